package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"troupe/bench/process"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

// home has the definitions of the order, once with jobs and once with events.
//
//go:embed home
var home embed.FS

const (
	jobsWorkflow   = "order-jobs"
	eventsWorkflow = "order-events"
	troupeUser     = "shop"
)

func connectTroupe(addr, token string) (*client.Client, error) {
	return client.New(client.Options{Address: "http://" + addr, Token: token, HTTP: newHTTP()})
}

// troupeWorker does the jobs until ctx ends.
func troupeWorker(ctx context.Context, addr, token string) error {
	c, err := connectTroupe(addr, token)
	if err != nil {
		return err
	}
	w := client.Worker{
		Client: c, Types: []string{"reserve", "charge"}, Concurrency: slices.Max(inFlights),
		Handle:  doJob,
		OnError: func(err error) { fmt.Fprintln(os.Stderr, err) },
	}
	return w.Run(ctx)
}

func doJob(_ context.Context, job *client.Job) (any, error) {
	if job.Type == "reserve" {
		var o Order
		err := json.Unmarshal(job.Data, &o)
		return reserve(o), err
	}
	var p Paid
	err := json.Unmarshal(job.Data, &p)
	return charge(p), err
}

// startTroupe starts the server, and returns a client with its address and token.
func startTroupe(ctx context.Context, s *started) (c *client.Client, addr, token string, err error) {
	if err := os.CopyFS(s.dir, home); err != nil {
		return nil, "", "", err
	}
	p, tokens, err := process.Serve(ctx, s.program, s.dir+"/home", []string{troupeUser})
	if err != nil {
		return nil, "", "", err
	}
	s.processes = append(s.processes, p)
	c, err = connectTroupe(p.Addr, tokens[troupeUser])
	return c, p.Addr, tokens[troupeUser], err
}

// state is what the data of an order become.
type state struct {
	Order       Order       `json:"order,omitzero"`
	Reservation Reservation `json:"reservation,omitzero"`
	Receipt     Receipt     `json:"receipt,omitzero"`
}

func jsonOf(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of this program
	}
	return text
}

// startJobs has a worker do the steps. A watch tells of the orders that are paid.
func startJobs(ctx context.Context, s *started) error {
	c, addr, token, err := startTroupe(ctx, s)
	if err != nil {
		return err
	}
	var paid sync.Map // a channel for each instance, closed when it is paid; made by the first who hears of it
	of := func(id string) chan struct{} {
		done, _ := paid.LoadOrStore(id, make(chan struct{}))
		return done.(chan struct{})
	}
	opened := make(chan struct{})
	opening := func() func(string) { once := sync.OnceFunc(func() { close(opened) }); return func(string) { once() } }()
	watching, stop := context.WithCancelCause(ctx)
	s.closers = append(s.closers, func() { stop(nil) })
	go func() {
		request := client.WatchRequest{WorkflowID: jobsWorkflow, Filter: `{"states.nodeId": "paid"}`, Opened: opening}
		for notice, err := range c.Watch(watching, request) {
			if err == nil && notice.Entry == nil {
				err = errors.New("the watch has lost entries: " + notice.Lost)
			}
			if err != nil {
				stop(err)
				return
			}
			close(of(notice.Entry.InstanceID))
		}
	}()
	select {
	case <-opened:
	case <-watching.Done():
		return context.Cause(watching)
	}
	s.run = func(ctx context.Context, orders []Order) error {
		made, err := c.Create(ctx, client.CreateRequest{WorkflowID: jobsWorkflow, Public: jsonOf(state{Order: orders[0]}), Minimal: true})
		if err != nil {
			return err
		}
		select {
		case <-of(made.ID):
			paid.Delete(made.ID)
			return nil
		case <-watching.Done():
			return context.Cause(watching)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.check = func(ctx context.Context, done int) error { return checkTroupe(ctx, c, jobsWorkflow, done) }
	return s.worker(ctx, "troupe", addr, token)
}

// startEvents has the caller do the steps, and send their results as events.
func startEvents(ctx context.Context, s *started) error {
	c, _, _, err := startTroupe(ctx, s)
	if err != nil {
		return err
	}
	s.check = func(ctx context.Context, done int) error { return checkTroupe(ctx, c, eventsWorkflow, done) }
	s.run = func(ctx context.Context, orders []Order) error {
		o, reserved := orders[0], reserve(orders[0])
		made, err := c.Create(ctx, client.CreateRequest{WorkflowID: eventsWorkflow, Public: jsonOf(state{Order: o}), Minimal: true})
		for _, e := range []api.SentEvent{{Name: "reserved", Data: jsonOf(state{Reservation: reserved})}, {Name: "charged", Data: jsonOf(state{Receipt: charge(Paid{o, reserved})})}} {
			if err == nil {
				_, err = c.Send(ctx, client.SendRequest{WorkflowID: eventsWorkflow, InstanceID: made.ID, Event: e.Name, Data: e.Data, Minimal: true})
			}
		}
		return err
	}
	return nil
}

// startBatches is startEvents for many orders at a time: a batch for each of the three steps.
func startBatches(ctx context.Context, s *started) error {
	c, _, _, err := startTroupe(ctx, s)
	if err != nil {
		return err
	}
	s.check = func(ctx context.Context, done int) error { return checkTroupe(ctx, c, eventsWorkflow, done) }
	s.run = func(ctx context.Context, orders []Order) error {
		ids := make([]string, len(orders))
		step := func(item func(i int, o Order) any) error {
			var items []json.RawMessage
			for i, o := range orders {
				items = append(items, jsonOf(item(i, o)))
			}
			results, err := c.Batch(ctx, client.BatchRequest{Items: items})
			for i, r := range results {
				err = cmp.Or(err, r.Err())
				ids[i] = r.InstanceID
			}
			return err
		}
		event := func(i int, name string, data state) any {
			return api.EventRequest{WorkflowID: eventsWorkflow, InstanceID: ids[i], Event: api.SentEvent{Name: name, Data: jsonOf(data)}}
		}
		err := step(func(_ int, o Order) any {
			return api.CreateRequest{WorkflowID: eventsWorkflow, Data: &api.CreateData{Public: jsonOf(state{Order: o})}}
		})
		if err == nil {
			err = step(func(i int, o Order) any { return event(i, "reserved", state{Reservation: reserve(o)}) })
		}
		if err == nil {
			err = step(func(i int, o Order) any { return event(i, "charged", state{Receipt: charge(Paid{o, reserve(o)})}) })
		}
		return err
	}
	return nil
}

// checkTroupe counts the orders that are paid, and reads one of them.
func checkTroupe(ctx context.Context, c *client.Client, workflow string, done int) error {
	page, err := c.Instances(ctx, client.ListRequest{WorkflowID: workflow, Filter: `{"states.nodeId": "paid"}`, Count: true, Limit: 1})
	if err != nil {
		return err
	}
	if page.Count == nil || *page.Count != int64(done) || len(page.Items) == 0 {
		return fmt.Errorf("%v orders are paid, want %d", page.Count, done)
	}
	var s state
	if err := json.Unmarshal(page.Items[0].Public, &s); err != nil {
		return err
	}
	return checkReceipt(s.Order, s.Receipt)
}
