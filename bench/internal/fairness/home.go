package fairness

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"troupe/bench/internal/harness"
	"troupe/bench/process"
)

// Where requests come from.
const (
	politeAddr  = "127.0.0.1"
	hostileAddr = "127.0.0.2"
)

//go:embed home
var files embed.FS

const politePassword = "an old oak, 1843"

func (m *measurement) newHome(ctx context.Context, dir string) (*home, error) {
	h := &home{Server: &harness.Server{Home: filepath.Join(dir, "home")}}
	tree, err := fs.Sub(files, "home")
	if err == nil {
		err = os.CopyFS(h.Home, tree)
	}
	if err != nil {
		return nil, err
	}
	set := exec.CommandContext(ctx, m.Program, "password", "set", "--home", h.Home, "--user", "polite")
	set.Stdin = strings.NewReader(politePassword + "\n")
	if text, err := set.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("set a password: %w\n%s", err, text)
	}
	for user, c := range map[string]*credentials{"polite": &h.polite, "hostile": &h.hostile} {
		var err1, err2 error
		c.token, err1 = process.Output(ctx, m.Program, "token", "create", "--home", h.Home, "--user", user)
		c.cookie, err2 = process.Output(ctx, m.Program, "session", "create", "--home", h.Home, "--user", user)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
	}
	if err := h.Start(ctx, m.Program, m.serve...); err != nil {
		return nil, err
	}
	defer h.Stop()
	return h, h.fill(ctx, m)
}

// How much there is before the attacks. Besides, the hostile user has as many records as the flag says, as many entries
// in the history of the last of them, and a form for every ten.
const (
	politeTickets = 100
	closedTickets = 20
	textBytes     = 4 << 10
)

func (h *home) fill(ctx context.Context, m *measurement) error {
	polite := newCaller(h.Addr, politeAddr, m.loops, nil).with(h.polite.token, h.polite.cookie)
	hostile := newCaller(h.Addr, hostileAddr, m.loops, nil).with(h.hostile.token, h.hostile.cookie)
	defer polite.close()
	defer hostile.close()
	var err error
	if h.politeIDs, err = polite.createAll(ctx, politeTickets+closedTickets, m.loops, newTicket("mine")); err != nil {
		return err
	}
	if h.hostileIDs, err = hostile.createAll(ctx, m.records, m.loops, newTicket(strings.Repeat("a", textBytes))); err != nil {
		return err
	}
	h.hot = h.hostileIDs[len(h.hostileIDs)-1]
	closed := h.politeIDs[politeTickets:]
	h.politeIDs = h.politeIDs[:politeTickets]
	_, err = polite.createAll(ctx, len(closed), m.loops, func(n int) (path, body string) {
		return workflowPath + "/event", strings.Replace(event(closed[n], "{}"), `"note"`, `"close"`, 1)
	})
	if err != nil {
		return err
	}
	_, err = hostile.createAll(ctx, m.records, m.loops, func(int) (path, body string) {
		return workflowPath + "/event", event(h.hot, `{"comment":"one of many"}`)
	})
	if err != nil {
		return err
	}
	_, err = hostile.createAll(ctx, m.records/10, m.loops, func(int) (path, body string) {
		return "/form-portal/forms/create", `{"formId":"note"}`
	})
	return err
}
