package compare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"troupe/bench/internal/ceiling"
	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

func (t *target) takes(c cell) bool {
	return c.batch == 0 || t.name == troupeTarget || t.name == otherTarget
}

// startTargets starts the servers. What it returns to stop them must be called in any case.
func (p *plan) startTargets(ctx context.Context) (all []*target, stop func(), err error) {
	stop = func() {
		for _, t := range all {
			t.Stop()
		}
	}
	if p.cores > 0 { // NB: this process has read it at its start; those that it starts inherit it
		if err := os.Setenv("GOMAXPROCS", strconv.Itoa(p.cores)); err != nil {
			return nil, stop, err
		}
	}
	for _, name := range p.targets {
		fmt.Fprintf(p.Errs, "start %s\n", name)
		var t *target
		switch name {
		case troupeTarget:
			if err = p.Build(ctx); err == nil {
				t, err = p.startTroupe(ctx, name, p.Program)
			}
		case otherTarget:
			t, err = p.startTroupe(ctx, name, p.against)
		default:
			t, err = p.startCeiling(ctx, name)
		}
		if err != nil {
			return all, stop, err
		}
		all = append(all, t)
	}
	return all, stop, nil
}

const ceilingCommand = "ceiling"

func (p *plan) startCeiling(ctx context.Context, name string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	store := ""
	if name == durableCeiling {
		store = filepath.Join(p.Dir, "ceiling")
	}
	admin, err := process.FreeAddr()
	if err != nil {
		return nil, err
	}
	t := &target{name: name, admin: admin}
	t.Process, err = process.Start(ctx, filepath.Join(p.Dir, name+".log"), self, ceilingCommand, "-dir", store, "-admin", admin)
	return t, err
}

// serveCeiling is the other side of startCeiling: it serves until ctx ends.
func serveCeiling(ctx context.Context, h *harness.Harness) error {
	listen := h.Flags.String("listen", "", "address")
	dir := h.Flags.String("dir", "", "folder of the store; empty stores nothing")
	admin := h.Flags.String("admin", "", "address for profiles")
	if err := h.Parse(""); err != nil {
		return err
	}
	s, err := ceiling.Open(*dir)
	if err != nil {
		return err
	}
	go servePprof(*admin)
	server := &http.Server{Addr: *listen, Handler: s, ReadHeaderTimeout: time.Minute}
	stopped := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		// Not ctx: it has ended.
		late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(late)
	})()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return errors.Join(<-stopped, s.Close())
}

// servePprof serves Go's profiles until the process ends.
func servePprof(addr string) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	_ = server.ListenAndServe() // whoever asks for a profile sees that there is none
}

func (p *plan) startTroupe(ctx context.Context, name, program string) (*target, error) {
	home := filepath.Join(p.Dir, name+"-home")
	if err := load.BuiltIn().WriteHome(home); err != nil {
		return nil, err
	}
	s, err := harness.Serve(ctx, program, home, []string{load.UserID})
	if err != nil {
		return nil, err
	}
	return &target{name: name, Process: s.Process, token: s.Tokens[load.UserID], admin: s.Admin}, nil
}
