package byitself

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"troupe/bench/load"
	"troupe/gateway/client"
)

// runChildren kills the server while instances have children, and others leave theirs.
func (m *measurement) runChildren(ctx context.Context) error {
	s, err := m.start(ctx, "")
	if err != nil {
		return err
	}
	defer func() { s.Stop() }()
	ids, err := s.many(ctx, m.children, func(int) string { return `{"workflowId":"asking"}` })
	if err != nil {
		return err
	}
	if _, err := s.many(ctx, m.children/2, func(i int) string { return event("asking", ids[2*i], "leave", i) }); err != nil {
		return err
	}
	for kill := range m.kills {
		<-time.After(50*time.Millisecond + rand.N(300*time.Millisecond)) //nolint:gosec // no secret
		s.Kill()
		if _, err := m.restart(ctx, s); err != nil {
			return err
		}
		waiting, err := s.count(ctx, "asking", `{"states.nodeId":"open"}`)
		if err != nil {
			return err
		}
		fmt.Fprintf(m.Errs, "kill %d: %d instances wait for their child\n", kill+1, waiting)
	}
	if err := s.awaitChildren(ctx); err != nil {
		return err
	}
	ended, err := s.checkChildren(ctx, ids)
	if err != nil {
		return err
	}
	m.text.Printf("\n## %d children, and %d times kill -9 while they are created, answer and are cancelled\n\n", m.children, m.kills)
	m.text.Printf("No instance has had two children, and none of them is without its parent. %d were done and told their parent once; %d parents left theirs, which was then never created, cancelled, or done.\n", ended, len(ids)-ended)
	return nil
}

// count returns how many instances match.
func (s *server) count(ctx context.Context, workflow, filter string) (int64, error) {
	page, err := s.Instances(ctx, client.ListRequest{WorkflowID: workflow, Filter: filter, Limit: 1, Count: true})
	if err != nil {
		return 0, err
	}
	return *page.Count, nil
}

// awaitChildren returns when nobody waits for a child and nothing is in the outbox, or nothing of that has changed for silenceMax.
func (s *server) awaitChildren(ctx context.Context) error {
	last, since := int64(-1), time.Now()
	for {
		waiting, err := s.count(ctx, "asking", `{"states.nodeId":"open"}`)
		if err != nil {
			return err
		}
		outbox, err := s.Outbox(ctx, client.OutboxRequest{Limit: 1000})
		if err != nil {
			return err
		}
		left := waiting + int64(len(outbox.Outbox))
		switch {
		case left == 0 && outbox.Next == "":
			return nil
		case left != last:
			last, since = left, time.Now()
		case time.Since(since) > silenceMax:
			return fmt.Errorf("%d instances wait for their child, and nothing has come for %s", waiting, silenceMax)
		}
		if !load.Sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// checkChildren demands that each instance has one child at most and has heard of it once or left it, that each child has ended, and that there
// are no others. It returns how many have heard.
func (s *server) checkChildren(ctx context.Context, ids []string) (ended int, err error) {
	children := map[string][]string{} // by parent
	for page, err := range s.InstancePages(ctx, client.ListRequest{WorkflowID: "answering", Limit: 1000}) {
		if err != nil {
			return 0, err
		}
		for i := range page.Instances {
			var public struct{ Of string }
			if err := json.Unmarshal(page.Instances[i].Public, &public); err != nil {
				return 0, err
			}
			children[public.Of] = append(children[public.Of], page.Instances[i].ID)
		}
	}
	var faults error // the first one
	add := func(format string, args ...any) { faults = cmp.Or(faults, fmt.Errorf(format, args...)) }
	heard := map[string]bool{}
	for page, err := range s.InstancePages(ctx, client.ListRequest{WorkflowID: "asking", Limit: 1000, Fields: []string{"svcHistory"}}) {
		if err != nil {
			return 0, err
		}
		for i := range page.Instances {
			in := &page.Instances[i]
			events := ""
			for _, e := range in.History {
				events += e.TransitionEvent + ","
			}
			// NB: one that was left too late has its entry all the same.
			heard[in.ID] = strings.HasPrefix(events, ",done.invoke.open,")
			// NB: one that was left before its child was created has none.
			if n := len(children[in.ID]); n > 1 || n == 0 && heard[in.ID] {
				add("%s has the children %v", in.ID, children[in.ID])
			}
			if !slices.Contains([]string{",leave,", ",done.invoke.open,", ",done.invoke.open,leave,"}, events) {
				add("%s has the events %s", in.ID, events)
			}
		}
	}
	if len(heard) != len(ids) {
		add("%d instances are there, and %d were made", len(heard), len(ids))
	}
	for parent := range children {
		if _, there := heard[parent]; !there {
			add("the children %v have no parent", children[parent])
		}
	}
	for _, id := range ids {
		if faults != nil {
			return 0, faults
		}
		if heard[id] {
			ended++
		}
		if len(children[id]) == 0 {
			continue
		}
		p, err := s.Pending(ctx, "answering", children[id][0])
		if err != nil {
			return 0, err
		}
		if p.Ended == nil || heard[id] && *p.Ended != "done" || len(p.Timers) > 0 {
			add("the child %s of %s has not ended as it should: %s", children[id][0], id, p.Raw)
		}
	}
	return ended, faults
}
