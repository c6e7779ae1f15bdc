package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"troupe/bench/load"
	"troupe/gateway/client"
)

// readers is how many read at a time.
const readers = 16

// check reads instances through a node, and says what is wrong with them.
func check(ctx context.Context, n *Node, all []*instance) error {
	return load.Each(ctx, readers, len(all), func(ctx context.Context, i int) error {
		found, err := read(ctx, n, load.WorkflowID, all[i].id)
		if err == nil {
			err = compare(found, all[i].acked)
		}
		if err != nil {
			return fmt.Errorf("%s, read through %s: %w", all[i].id, n.Home, err)
		}
		return nil
	})
}

// read reads an instance through a node, which must know it.
func read(ctx context.Context, n *Node, workflow, id string) (found *client.Instance, err error) {
	err = patiently(ctx, func() (err error) {
		found, err = n.Client.Instance(ctx, client.InstanceRequest{WorkflowID: workflow, InstanceID: id})
		return err
	})
	return found, err
}

// patiently asks until there is an answer: what is busy for a moment may refuse.
func patiently(ctx context.Context, ask func() error) error {
	var refused error
	err := Again(ctx, func() error {
		err := ask()
		if err != nil && !passing(err) {
			refused, err = err, nil
		}
		return err
	})
	return cmp.Or(err, refused)
}

// compare says how an instance differs from one with so many entries, each of which was
// acknowledged once.
func compare(found *client.Instance, acked uint64) error {
	if found.Sequence != acked || uint64(len(found.History)) != acked {
		return fmt.Errorf("number %d, %d entries, and %d were acknowledged", found.Sequence, len(found.History), acked)
	}
	for i, entry := range found.History {
		want := ""
		if i > 0 {
			want, _ = next(uint64(i))
		}
		if entry.TransitionEvent != want {
			return fmt.Errorf("entry %d is %q, and %q was acknowledged", i, entry.TransitionEvent, want)
		}
	}
	var public struct {
		N uint64 `json:"n"`
	}
	if err := json.Unmarshal(found.Public, &public); err != nil || public.N != acked-1 {
		return fmt.Errorf("its data is that of event %d, and %d were acknowledged: %w", public.N, acked-1, err)
	}
	return nil
}

// check holds the workers still, and reads through every node what changed since the last check,
// and how many instances there are.
func (r *run) check(ctx context.Context, workers []*worker) error {
	for _, w := range workers {
		w.between.Lock()
		defer w.between.Unlock()
	}
	changed := slices.DeleteFunc(slices.Clone(r.ledger.made), func(i *instance) bool { return r.checked[i] == i.acked })
	for _, n := range r.fleet.Nodes {
		if err := errors.Join(check(ctx, n, changed), r.count(ctx, n)); err != nil {
			return err
		}
	}
	for _, i := range changed {
		r.checked[i] = i.acked
	}
	return r.pool.judge(ctx, r.fleet.Nodes[:])
}

// count holds that a node lists all instances, and none that was made twice.
func (r *run) count(ctx context.Context, n *Node) error {
	var page *client.Page[client.Instance]
	err := patiently(ctx, func() (err error) {
		page, err = n.Client.Instances(ctx, client.ListRequest{WorkflowID: load.WorkflowID, Limit: 1, Count: true})
		return err
	})
	if err == nil && *page.Count != int64(len(r.ledger.made)) {
		err = fmt.Errorf("%d instances are listed, and %d were made", *page.Count, len(r.ledger.made))
	}
	if err != nil {
		return fmt.Errorf("list through %s: %w", n.Home, err)
	}
	return nil
}

// replicas kills all nodes and makes each a cluster of its own, which must have everything.
func (r *run) replicas(ctx context.Context) error {
	err := Again(ctx, func() error { // what only a majority has shall be everywhere
		status, err := r.fleet.Nodes[0].Status(ctx)
		for _, n := range status.Nodes {
			if n.Lag > 0 {
				err = errors.Join(err, fmt.Errorf("%s lacks %d entries", n.ID, n.Lag))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, n := range r.fleet.Nodes {
		all.Go(n.Kill)
	}
	all.Wait()
	for _, n := range r.fleet.Nodes {
		if _, err := n.Output(ctx, "cluster", "recover", "--i-accept-loss", "--home", n.Home); err != nil {
			return err
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
		err := Again(ctx, func() error { return r.count(ctx, n) })
		if err := errors.Join(err, check(ctx, n, r.ledger.made), r.pool.check(ctx, n)); err != nil {
			return fmt.Errorf("the replica of %s alone: %w", n.Home, err)
		}
		n.Kill()
	}
	return nil
}

// keepLogs moves the logs of a run that failed to where they stay.
func keepLogs(dir string) (string, error) {
	to, err := os.MkdirTemp("", "troupe-cluster-logs-")
	if err != nil {
		return "", err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, log := range logs {
		err = errors.Join(err, os.Rename(log, filepath.Join(to, filepath.Base(log))))
	}
	return to, err
}
