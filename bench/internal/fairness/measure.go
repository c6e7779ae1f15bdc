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
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

// measureAt carries out one attack on the home that is there, or on a new one if it leaves something behind.
func (m *measurement) measureAt(ctx context.Context, shared *home, a attack) (*phase, error) {
	if !a.alone {
		return m.measure(ctx, shared, a)
	}
	h, err := m.newHome(ctx, filepath.Join(m.Dir, a.name))
	if err != nil {
		return nil, err
	}
	p, err := m.measure(ctx, h, a)
	return p, errors.Join(err, os.RemoveAll(filepath.Dir(h.Home)))
}

func (m *measurement) measure(ctx context.Context, h *home, a attack) (result *phase, err error) {
	if err := h.Start(ctx, m.Program, m.serve...); err != nil {
		return nil, err
	}
	defer h.Stop()
	e := newHostile(h.Addr, h, m)
	p, err := m.startPolite(ctx, politeSetup{h.Addr, h.polite.token, h.polite.cookie, h.politeIDs})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	result = &phase{Attack: a.name, What: a.what}

	if a.before != nil {
		a.before(ctx, e)
	}
	if _, err := p.do(politeOrder{}); err != nil { // who was there before has a connection
		return nil, err
	}
	if a.aligned {
		lead := m.warmUp + m.duration/4
		load.Sleep(ctx, time.Until(time.Now().Add(lead).Truncate(time.Minute).Add(time.Minute-lead)))
	}
	attacking, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { a.run(attacking, e) })
	beside.Go(func() { result.PeakBytes = process.PeakBytes(attacking, h.PID()) })
	begun := time.Now()
	used, err1 := process.ProcessorTime(h.PID())
	got, err := p.do(politeOrder{m.rate, m.warmUp, m.duration})
	later, err2 := process.ProcessorTime(h.PID())
	result.Cores = (later - used).Seconds() / time.Since(begun).Seconds()
	stop()
	beside.Wait()
	e.close()
	after, err3 := p.do(politeOrder{})
	if err := errors.Join(err, err3); err != nil {
		return nil, err
	}
	result.Recovered = after.Recovered
	select {
	case <-h.Ended():
		result.Died = h.LastWords()
	default:
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("processor time: %w", err)
		}
	}
	result.Hostile = e.got.Outcome(m.duration).Errors
	result.All, result.Kinds = got.All, got.Kinds
	return result, ctx.Err()
}

func newHostile(addr string, h *home, m *measurement) *hostile {
	over := newLink(linkMegabits)
	stranger := newCaller(addr, hostileAddr, m.loops, over)
	e := &hostile{
		caller: stranger.with(h.hostile.token, h.hostile.cookie), stranger: stranger, neighbour: newCaller(addr, politeAddr, m.loops, over),
		records: h.hostileIDs, hot: h.hot, loops: m.loops, connections: m.connections, tasks: m.tasks,
	}
	e.budget.Store(budgetMax)
	return e
}

// worst is the kind whose p99 grew the most beside the baseline, and how many times.
// A kind without an answer has no p99: its errors speak.
func (p *phase) worst(base *phase) (name string, times float64) {
	for _, k := range kinds {
		if t := ratio(p.Kinds[k.name].Summary, base.Kinds[k.name].Summary); t > times {
			name, times = k.name, t
		}
	}
	return name, times
}

func ratio(o, base load.Summary) float64 {
	if base.Latency.P99Ms == 0 {
		return 0
	}
	return o.Latency.P99Ms / base.Latency.P99Ms
}

// sums are how many requests were answered, and how many were not.
func (p *phase) sums() (answered, failed int64) {
	for _, o := range p.Kinds {
		answered += o.Count
		failed += o.Failed()
	}
	return answered, failed
}

func (p *phase) line(base *phase) string {
	answered, failed := p.sums()
	name, times := p.worst(base)
	return fmt.Sprintf("%5d answered, %4d errors, p99 %5.1f times, worst %5.1f (%s), recovered in %.0f ms", answered, failed, ratio(p.All, base.All), times, name, harness.Milliseconds(p.Recovered))
}

// report is one table of all attacks, and one for each, in Markdown. The first phase is the baseline.
func report(phases []*phase) string {
	base := phases[0]
	var b harness.Table
	b.Printf("\n## The polite user under each attack\n\n")
	b.Head("Attack", "answered", "errors", "p99 of all beside nobody", "worst p99 beside nobody", "of", "recovered ms", "server cores", "peak MB", "the hostile one got")
	for _, p := range phases {
		answered, failed := p.sums()
		name, times := p.worst(base)
		b.Printf("| %s | %d | %d | %.1f | %.1f | %s | %.0f | %.2f | %d | %s |\n", p.Attack, answered, failed, ratio(p.All, base.All), times, name,
			harness.Milliseconds(p.Recovered), p.Cores, p.PeakBytes>>20, harness.Counts(p.Hostile))
	}
	for _, p := range phases {
		p.table(&b, base)
	}
	b.WriteString("\nLatencies count from when a request was due, and are those of answers with 200; everything else is an error, " +
		"after " + answerWaitMax.String() + " in any case. Recovered: when, after the attack, a new connection and an event were answered again.\n")
	return b.String()
}

func (p *phase) table(b *harness.Table, base *phase) {
	b.Printf("\n### %s: %s\n\n", p.Attack, p.What)
	if p.Died != "" {
		b.Printf("**The server ended:** %s\n\n", strings.ReplaceAll(p.Died, "\n", " "))
	}
	b.Head("Request", "answered", "p50 ms", "p99 ms", "max ms", "p99 beside nobody", "errors")
	for _, k := range kinds {
		o := p.Kinds[k.name]
		b.Printf("| %s | %d | %.2f | %.2f | %.2f | %.1f | %s |\n", k.name, o.Count, o.Latency.P50Ms, o.Latency.P99Ms,
			o.Latency.MaxMs, ratio(o.Summary, base.Kinds[k.name].Summary), harness.Counts(o.Errors))
	}
}

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
