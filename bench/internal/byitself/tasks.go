package byitself

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/gateway/client"
)

// listings is how often each list is asked for.
const listings = 100

// runTasks makes open tasks for a role, gives some to one user, and measures lists of 50.
func (m *measurement) runTasks(ctx context.Context) (err error) {
	s, err := m.start(ctx, "")
	if err != nil {
		return err
	}
	defer func() { s.Stop(); err = errors.Join(err, os.RemoveAll(s.Home)) }()
	now, begun := time.Now(), time.Now()
	ids, err := s.many(ctx, m.tasks, func(i int) string {
		return fmt.Sprintf(`{"workflowId":"deciding","data":{"svcPublic":{"n":%d,"due":%q}}}`, i, now.Add(time.Duration(i*7919%m.tasks)*time.Second).UTC().Format(time.RFC3339))
	})
	if err != nil {
		return err
	}
	m.text.Printf("\n## %d open tasks for one role\n\nCreated at %.0f a second, in batches.\n\n", m.tasks, float64(m.tasks)/time.Since(begun).Seconds())
	for _, id := range ids[:min(200, len(ids))] {
		if _, err := s.ChangeTask(ctx, id+"-1-0", client.ClaimTask, ""); err != nil {
			return err
		}
	}
	for _, id := range ids[min(200, len(ids)):min(400, len(ids))] {
		if _, err := s.Send(ctx, client.SendRequest{WorkflowID: "deciding", InstanceID: id, Event: "go", Minimal: true}); err != nil {
			return err
		}
	}
	if err := m.lists(ctx, s, "right behind the load"); err != nil {
		return err
	}
	waited, err := awaitRest(ctx, s.PID())
	if err != nil {
		return err
	}
	if err := m.lists(ctx, s, fmt.Sprintf("after %.0f s, when the server had nothing left to do", waited.Seconds())); err != nil {
		return err
	}
	m.text.Printf("\nResident memory of the server: %d MiB.\n", process.ResidentBytes(s.PID())>>20)
	return nil
}

// lists measures the lists of each scope and order.
func (m *measurement) lists(ctx context.Context, s *server, when string) error {
	m.text.Printf("\nA list of 50 over HTTP %s, %d times, in milliseconds:\n\n", when, listings)
	m.text.Head("Scope", "Sort", "Median", "p90", "Slowest")
	for _, scope := range []string{"open", "all", "mine"} {
		for _, sort := range []string{"due", "-due", "created", "-created", "priority", "-priority"} {
			if err := m.list(ctx, s, client.TasksRequest{Scope: scope, Sort: sort, Limit: 50}); err != nil {
				return err
			}
		}
	}
	return m.list(ctx, s, client.TasksRequest{Scope: "done", Limit: 50})
}

// awaitRest waits until a process uses little of a processor for some seconds, and at most five minutes: a store goes on merging what was
// written to it.
func awaitRest(ctx context.Context, pid int) (time.Duration, error) {
	const look, little, most = 3 * time.Second, 100 * time.Millisecond, 5 * time.Minute
	begun := time.Now()
	for before := time.Duration(0); time.Since(begun) < most; {
		used, err := process.ProcessorTime(pid)
		if err != nil {
			return 0, err
		}
		if before > 0 && used-before < little {
			break
		}
		before = used
		if !load.Sleep(ctx, look) {
			return 0, ctx.Err()
		}
	}
	return time.Since(begun), nil
}

// list measures one list; the first answers warm the store's cache and do not count.
func (m *measurement) list(ctx context.Context, s *server, r client.TasksRequest) error {
	var took load.Histogram
	for i := range listings + 5 {
		begun := time.Now()
		page, err := s.Tasks(ctx, r)
		if err != nil {
			return err
		}
		if i >= 5 {
			took.Record(time.Since(begun))
		}
		if want := min(50, m.tasks); len(page.Tasks) != want && r.Scope != "mine" && r.Scope != "done" || page.Next == "" && m.tasks > 1000 {
			return fmt.Errorf("a list of %s by %s has %d tasks, next %q", r.Scope, r.Sort, len(page.Tasks), page.Next)
		}
		r.Cursor = page.Next // every page is another one
		if r.Cursor == "" || i%3 == 2 {
			r.Cursor = ""
		}
	}
	of := took.Summary(time.Second)
	m.text.Printf("| %s | %s | %.1f | %.1f | %.1f |\n", r.Scope, r.Sort, of.P50.Milliseconds(), of.P90.Milliseconds(), of.Max.Milliseconds())
	return nil
}
