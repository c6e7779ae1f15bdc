package job

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/guard"
	"troupe/actors/identity"
	"troupe/actors/job/ring"
	"troupe/persistence/key"
)

// kinds are what nodes ask each other, and what they know of it.
type kinds struct {
	types    *fanout.Kind[struct{}, TypeCount, struct{}]
	take     *fanout.Kind[asked, Leased, struct{}]
	limited  *fanout.Kind[asked, Leased, limitedEnd]
	changes  *fanout.Kind[changing, changed, struct{}]
	running  *fanout.Kind[[]string, runs, struct{}]
	patience fanout.Patience

	// Service.mu guards the rest.
	next    int               // the node that is asked first
	counted map[string]*count // of limited types, by type
}

func inOrder[T any](_, _ T) int { return 0 }

func (s *Service) share() {
	f := s.o.Fanout
	s.kinds = &kinds{counted: map[string]*count{}}
	s.kinds.patience = fanout.Patience{Most: askMax, Probe: s.probe}
	s.rings = ring.New(ring.Options{Fanout: f, Leads: s.leads, Present: s.present, Wake: func(typ string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wakeLocked(typ)
	}})
	s.lister.kind = fanout.NewKind(f, "jobs", s.listHere)
	s.kinds.types = fanout.NewKind(f, "job types", func(_ context.Context, _ []key.Shard, _ *struct{}, yield func(TypeCount) error) (end struct{}, err error) {
		for _, c := range s.Here() {
			if err == nil {
				err = yield(c)
			}
		}
		return end, err
	})
	s.kinds.take = fanout.NewKind(f, "take jobs", func(ctx context.Context, shards []key.Shard, in *asked, yield func(Leased) error) (end struct{}, err error) {
		if err = s.leads(shards); err != nil {
			return end, err
		}
		leased, err := s.take(ctx, in)
		return end, s.yieldEach(ctx, leased, err, yield)
	})
	s.kinds.limited = fanout.NewKind(f, "take limited jobs", func(ctx context.Context, shards []key.Shard, in *asked, yield func(Leased) error) (end limitedEnd, err error) {
		if err := s.leads(shards); err != nil {
			return end, err
		}
		leased, at, err := s.takeLimited(ctx, in)
		if end.Lacks = errors.Is(err, failure.ErrUnavailable); end.Lacks {
			err = nil // NB: else this node would be asked again, which has answered
		}
		err = s.yieldEach(ctx, leased, err, yield)
		if !at.IsZero() {
			end.Again = max(time.Until(at), 1)
		}
		return end, err
	})
	s.kinds.changes = fanout.NewKind(f, "change jobs", s.changeFor)
	s.kinds.running = fanout.NewKind(f, "running jobs", func(_ context.Context, _ []key.Shard, types *[]string, yield func(runs) error) (end struct{}, err error) {
		for _, r := range s.runningHere(*types) {
			if err == nil {
				err = yield(r)
			}
		}
		return end, err
	})
}

// yieldEach yields jobs unless there is an error. Those that cannot be yielded are given back.
func (s *Service) yieldEach(ctx context.Context, leased []Leased, err error, yield func(Leased) error) error {
	for i, l := range leased {
		if err == nil {
			err = yield(l)
		}
		if err != nil {
			s.giveBack(ctx, leased[i:])
			break
		}
	}
	return err
}

// giveBack ends leases that nobody got, as if they had not been given.
func (s *Service) giveBack(ctx context.Context, leased []Leased) {
	var now time.Duration
	in := &Request{Action: Fail}
	for i := range leased {
		in.Items = append(in.Items, Item{JobID: leased[i].JobID, Lease: leased[i].Lease, Later: true, RetryIn: &now})
	}
	_, _ = s.Change(context.WithoutCancel(ctx), in) // else the leases run out
}

// leads is failure.ErrNotLeader unless this node leads all of the shards.
func (s *Service) leads(shards []key.Shard) error {
	for _, sh := range shards {
		if s.o.Store.Epoch(sh) == 0 {
			return failure.Elsewhere(uint16(sh))
		}
	}
	return nil
}

// tryCluster looks on all nodes. Types with limits are asked of the node that leads the shard of the type, which counts for all.
func (s *Service) tryCluster(ctx context.Context, in *asked) (leased []Leased, at time.Time, err error) {
	free, limited := *in, map[string][]Grant{}
	free.Grants = nil
	for _, g := range in.Grants {
		if g.isLimited() {
			limited[g.Type] = append(limited[g.Type], g)
		} else {
			free.Grants = append(free.Grants, g)
		}
	}
	var failed error
	for _, typ := range slices.Sorted(maps.Keys(limited)) {
		part := *in
		part.Grants, part.Max = limited[typ], in.Max-len(leased)
		if part.Max == 0 {
			return leased, at, nil
		}
		more, again, err := s.askLimited(ctx, s.shardOfType(typ), &part)
		leased, failed = append(leased, more...), errors.Join(failed, err)
		if !again.IsZero() && (at.IsZero() || again.Before(at)) {
			at = again
		}
	}
	if free.Max -= len(leased); len(free.Grants) > 0 && free.Max > 0 {
		more, err := s.gather(ctx, &free)
		leased, failed = append(leased, more...), errors.Join(failed, err)
	}
	if len(leased) > 0 {
		failed = nil
	}
	return leased, at, failed
}

// askLimited has the node that leads a shard give jobs of a type, which it counts.
func (s *Service) askLimited(ctx context.Context, sh key.Shard, in *asked) (leased []Leased, at time.Time, err error) {
	node, err := s.leader(ctx, sh)
	if err != nil {
		return nil, at, err
	}
	var got []Leased
	var ends []limitedEnd
	err = s.askNode(ctx, node, 3*askWait, func(ctx context.Context) (err error) {
		ends, err = s.kinds.limited.Merge(ctx, in, fanout.Merging[Leased]{Shards: []key.Shard{sh}, Order: inOrder[Leased], Ahead: in.Max}, collect(&got))
		return err
	}, func() { s.giveBack(ctx, got) })
	if errors.Is(err, fanout.ErrSilent) {
		return nil, at, errLacks
	}
	for _, end := range ends {
		if end.Again > 0 {
			at = time.Now().Add(end.Again)
		}
		if end.Lacks {
			err = errLacks
		}
	}
	return got, at, unavailable(err)
}

// askNode is fanout.Patience.Ask for what may panic.
func (s *Service) askNode(ctx context.Context, name string, wait time.Duration, ask func(context.Context) error, late func()) error {
	return s.kinds.patience.Ask(ctx, name, wait, func(ctx context.Context) error {
		return s.guarded(func() error { return ask(ctx) })
	}, late)
}

func (s *Service) guarded(ask func() error) (err error) {
	if panicked := guard.Try(s.o.Log, "question about jobs", func() { err = ask() }); panicked != nil {
		err = panicked
	}
	return err
}

func collect[T any](into *[]T) func(T) error {
	return func(item T) error {
		*into = append(*into, item)
		return nil
	}
}

func (s *Service) shardOfType(typ string) key.Shard {
	h := fnv.New32a()
	_, _ = h.Write([]byte(typ)) // it takes everything
	return key.Shard(h.Sum32() % uint32(s.o.Store.Shards()))
}

const (
	askWait = 500 * time.Millisecond // how long a node is waited for
	askMax  = 2 * time.Second        // how long it may take, so that it can be told that what it gives comes too late
)

// errLacks is why nothing is given while not all is known.
var errLacks = failure.Refuse(failure.ErrUnavailable, "not all nodes of the cluster say which jobs they have, and the others have none")

// gather takes jobs of one node after the other, with another one first each time. What a node gives too late, it gets back.
func (s *Service) gather(ctx context.Context, in *asked) (leased []Leased, failed error) {
	nodes, failed := s.nodes(ctx)
	s.mu.Lock()
	s.kinds.next++
	first := s.kinds.next
	s.mu.Unlock()
	for i := range nodes {
		part := *in
		part.Max, part.Grants = in.Max-len(leased), slices.Clone(in.Grants)
		if part.Max == 0 {
			break
		}
		got, err := s.askOne(ctx, nodes[(first+i)%len(nodes)], &part)
		for i := range got {
			for k := range in.Grants {
				if g := &in.Grants[k]; g.Most > 0 && g.Type == got[i].Type && g.Workflow == got[i].WorkflowID {
					g.Most--
				}
			}
		}
		leased, failed = append(leased, got...), errors.Join(failed, err)
		if ctx.Err() != nil && len(leased) == 0 {
			return nil, ctx.Err()
		}
	}
	if len(leased) > 0 {
		failed = nil
	}
	return leased, unavailable(failed)
}

// askOne has one node give jobs.
func (s *Service) askOne(ctx context.Context, of node, in *asked) (leased []Leased, err error) {
	var got []Leased
	err = s.askNode(ctx, of.name, askWait, func(ctx context.Context) error {
		_, err := s.kinds.take.Merge(ctx, in, fanout.Merging[Leased]{Shards: []key.Shard{of.leads}, Order: inOrder[Leased], Ahead: in.Max}, collect(&got))
		return err
	}, func() { s.giveBack(ctx, got) })
	if errors.Is(err, fanout.ErrSilent) {
		return nil, errLacks
	}
	return got, err
}

// probe asks a node for nothing.
func (s *Service) probe(ctx context.Context, name string) error {
	nodes, _ := s.nodes(ctx)
	for _, of := range nodes {
		if of.name == name {
			return s.guarded(func() error {
				_, err := s.kinds.take.Merge(ctx, &asked{}, fanout.Merging[Leased]{Shards: []key.Shard{of.leads}, Order: inOrder[Leased]}, collect(new([]Leased)))
				return err
			})
		}
	}
	return nil // it leads nothing
}

// unavailable is err, of nodes that did not answer in time.
func unavailable(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	return err
}

// nodes are those that lead, as far as that is known; an error says that some shard has no leader.
func (s *Service) nodes(ctx context.Context) (of []node, err error) {
	seen := map[string]bool{}
	for _, sh := range s.o.Store.Numbered() {
		name, none := s.leader(ctx, sh)
		if none != nil {
			err = none
		} else if !seen[name] {
			seen[name] = true
			of = append(of, node{name, sh})
		}
	}
	return of, err
}

// leader is who leads a shard, as far as it is known.
func (s *Service) leader(ctx context.Context, sh key.Shard) (string, error) {
	known, cancel := context.WithCancel(ctx)
	cancel()
	return s.o.Peers.Leader(known, sh)
}

// takeLimited takes jobs of one type, within its limits over all nodes: one call after the other, so that what one gets
// counts for the next.
func (s *Service) takeLimited(ctx context.Context, in *asked) ([]Leased, time.Time, error) {
	typ := in.Grants[0].Type
	s.mu.Lock()
	c := s.kinds.counted[typ]
	if c == nil {
		c = &count{turn: make(chan struct{}, 1)}
		s.kinds.counted[typ] = c
	}
	s.mu.Unlock()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, time.Time{}, ctx.Err()
	}
	defer func() { <-c.turn }()
	if time.Since(c.at) >= countedFor {
		at := time.Now()
		of, err := s.countRunning(ctx, typ)
		if err != nil && c.of == nil {
			return nil, time.Time{}, err
		}
		if c.at = at; err == nil {
			c.of = of
		} // NB: else a shard that nobody leads would hold all back; the last count goes on, with what was given since
	}
	leased, at, err := s.within(in, func(of typeOf) int { return c.of[of.workflow] }, func(in *asked) ([]Leased, error) { return s.gather(ctx, in) })
	for i := range leased {
		c.of[leased[i].WorkflowID]++
	}
	for _, g := range in.Grants {
		if again := c.at.Add(countedFor); len(leased) == 0 && g.Running > 0 && c.of[g.Workflow] >= g.Running && (at.IsZero() || again.Before(at)) {
			at = again // some of them may be over by then
		}
	}
	return leased, at, err
}

// countedFor is how long a count of leases holds.
const countedFor = time.Second

// countRunning asks all nodes how many leases of a type they have, by workflow.
func (s *Service) countRunning(ctx context.Context, typ string) (map[string]int, error) {
	nodes, failed := s.nodes(ctx)
	of := map[string]int{}
	for _, n := range nodes {
		var got []runs
		failed = errors.Join(failed, s.askNode(ctx, n.name, askWait, func(ctx context.Context) error {
			_, err := s.kinds.running.Merge(ctx, &[]string{typ}, fanout.Merging[runs]{Shards: []key.Shard{n.leads}, Order: inOrder[runs], Ahead: 1}, collect(&got))
			return err
		}, func() {}))
		if failed != nil {
			return nil, unavailable(failed)
		}
		for _, r := range got {
			of[r.Workflow] += r.Count
		}
	}
	return of, unavailable(failed)
}

func (s *Service) runningHere(types []string) (out []runs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, typ := range types {
		if k := s.types[typ]; k != nil {
			for workflow, of := range k.shares {
				if of.running > 0 {
					out = append(out, runs{typ, workflow, of.running})
				}
			}
		}
	}
	return out
}

func (s *Service) changeFor(ctx context.Context, shards []key.Shard, in *changing, yield func(changed) error) (end struct{}, err error) {
	if err := s.leads(shards); err != nil {
		return end, err
	}
	var places []place
	for i := range in.Items {
		if name, ok := parseID(in.Items[i].JobID); ok && slices.Contains(shards, s.o.Store.ShardOf(name.ID)) {
			places = append(places, place{i, s.o.Store.ShardOf(name.ID), name})
		}
	}
	out := make([]error, len(in.Items))
	s.changeHere(ctx, in, places, out)
	for _, p := range places {
		c := changed{At: p.at}
		if out[p.at] != nil {
			of := failure.Of(out[p.at])
			if of.Kind == failure.ErrNotLeader {
				return end, of
			}
			c.Error = fanout.ErrorText(of)
		}
		if err := yield(c); err != nil {
			return end, err
		}
	}
	return end, nil
}

// changeCluster has the leaders change jobs. A part whose leader went away is asked again: a change that was made already is answered as the
// first time.
func (s *Service) changeCluster(ctx context.Context, in *changing, out []error) error {
	var shards []key.Shard
	open := map[int]bool{}
	for _, p := range in.places {
		open[p.at] = true
		if !slices.Contains(shards, p.shard) {
			shards = append(shards, p.shard)
		}
	}
	if len(shards) == 0 {
		return nil
	}
	slices.Sort(shards)
	_, err := s.kinds.changes.Merge(ctx, in, fanout.Merging[changed]{Shards: shards, Order: inOrder[changed], Ahead: len(in.Items)}, func(c changed) error {
		if open[c.At] = false; c.Error != nil {
			out[c.At] = fanout.ParseError("of the shard", c.Error)
		}
		return nil
	})
	for i := range out {
		if err != nil && open[i] {
			out[i] = err
		}
	}
	return nil
}

// present are the types of which there are jobs here.
func (s *Service) present() (types []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for typ, k := range s.types {
		if len(k.lines) > 0 {
			types = append(types, typ)
		}
	}
	return types
}

// Types counts the jobs of all types, on all nodes, for users who can list them.
func (s *Service) Types(ctx context.Context, caller *identity.Principal) ([]TypeCount, error) {
	if err := mayList(caller); err != nil {
		return nil, err
	}
	if s.kinds == nil {
		return s.Here(), nil
	}
	by := map[string]*TypeCount{}
	_, err := s.kinds.types.Merge(ctx, &struct{}{}, fanout.Merging[TypeCount]{
		Order: func(a, b TypeCount) int { return cmp.Compare(a.Type, b.Type) }, Ahead: 1,
	}, func(c TypeCount) error {
		if by[c.Type] == nil {
			by[c.Type] = &TypeCount{Type: c.Type}
		}
		by[c.Type].add(&c)
		return nil
	})
	return sorted(by), err
}
