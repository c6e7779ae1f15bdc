package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/internal/wait"
	"troupe/persistence/key"
)

// kinds are what nodes ask each other, and what they know of it.
type kinds struct {
	types   *fanout.Kind[struct{}, TypeCount, struct{}]
	take    *fanout.Kind[asked, Leased, struct{}]
	limited *fanout.Kind[asked, Leased, time.Duration]
	changes *fanout.Kind[changing, changed, struct{}]
	running *fanout.Kind[[]string, runs, struct{}]
	rings   *fanout.Kind[struct{}, string, struct{}]

	// Service.mu guards the rest.
	next      int                // the node that is asked first
	waiting   int                // calls that wait for jobs
	linger    *time.Timer        // ends the following of rings; nil: calls wait
	unfollow  context.CancelFunc // ends it at once; nil: nobody follows
	followers map[*follower]struct{}
	counted   map[string]*count // of limited types, by type
}

// runs is how many leases of a type and workflow a node has.
type runs struct {
	Type, Workflow string
	Count          int
}

// count is what nodes said of the leases of a type, and what was given since. Who has its turn has the rest.
type count struct {
	turn chan struct{} // has an entry while somebody takes jobs
	at   time.Time
	of   map[string]int // by workflow
}

// follower is another node, or this one, that is told of jobs.
type follower struct {
	rung  chan struct{} // has room for one
	types map[string]struct{}
}

func inOrder[T any](_, _ T) int { return 0 }

func (s *Service) share() {
	f := s.o.Fanout
	s.kinds = &kinds{followers: map[*follower]struct{}{}, counted: map[string]*count{}}
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
		for i, l := range leased {
			if err == nil {
				err = yield(l)
			}
			if err != nil {
				s.giveBack(ctx, leased[i:])
				break
			}
		}
		return end, err
	})
	s.kinds.limited = fanout.NewKind(f, "take limited jobs", func(ctx context.Context, shards []key.Shard, in *asked, yield func(Leased) error) (time.Duration, error) {
		if err := s.leads(shards); err != nil {
			return 0, err
		}
		leased, at, err := s.takeLimited(ctx, in)
		for _, l := range leased {
			if err == nil {
				err = yield(l)
			}
		}
		if at.IsZero() {
			return 0, err
		}
		return max(time.Until(at), 1), err
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
	s.kinds.rings = fanout.NewKind(f, "rings of jobs", s.ringsHere)
	s.kinds.rings.Live = true
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

// leads is failure.ErrNotLeader unless this node leads one of the shards.
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
	for _, typ := range slices.Sorted(maps.Keys(limited)) {
		part := *in
		part.Grants, part.Max = limited[typ], in.Max-len(leased)
		if part.Max == 0 {
			return leased, at, nil
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*askMax)
		waits, err := s.kinds.limited.Merge(asking, &part, fanout.Merging[Leased]{Shards: []key.Shard{s.shardOfType(typ)}, Order: inOrder[Leased], Ahead: part.Max}, func(l Leased) error {
			leased = append(leased, l)
			return nil
		})
		cancel()
		if err != nil && len(leased) == 0 {
			return nil, at, unavailable(err)
		}
		for _, d := range waits {
			if until := time.Now().Add(d); d > 0 && (at.IsZero() || until.Before(at)) {
				at = until
			}
		}
	}
	free.Max -= len(leased)
	if len(free.Grants) == 0 || free.Max == 0 {
		return leased, at, nil
	}
	more, err := s.gather(ctx, &free)
	if leased = append(leased, more...); len(leased) > 0 {
		err = nil
	}
	return leased, at, err
}

func (s *Service) shardOfType(typ string) key.Shard {
	h := fnv.New32a()
	_, _ = h.Write([]byte(typ)) // it takes everything
	return key.Shard(h.Sum32() % uint32(s.o.Store.Shards()))
}

// askMax is how long a node may take to give jobs. It is waited for in any case: what it gives would be lost.
const askMax = 2 * time.Second

// gather takes jobs of one node after the other, with another one first each time.
func (s *Service) gather(ctx context.Context, in *asked) (leased []Leased, failed error) {
	nodes := s.nodes(ctx)
	s.mu.Lock()
	s.kinds.next++
	first := s.kinds.next
	s.mu.Unlock()
	for i := range nodes {
		of := nodes[(first+i)%len(nodes)]
		part := *in
		part.Max, part.Grants = in.Max-len(leased), slices.Clone(in.Grants)
		if part.Max == 0 {
			break
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askMax)
		_, err := s.kinds.take.Merge(asking, &part, fanout.Merging[Leased]{Shards: of, Order: inOrder[Leased], Ahead: part.Max}, func(l Leased) error {
			leased = append(leased, l)
			for k := range in.Grants {
				if g := &in.Grants[k]; g.Most > 0 && g.Type == l.Type && g.Workflow == l.WorkflowID {
					g.Most--
				}
			}
			return nil
		})
		cancel()
		if ctx.Err() != nil && len(leased) == 0 {
			return nil, ctx.Err()
		}
		failed = errors.Join(failed, err)
	}
	if len(leased) > 0 {
		failed = nil
	}
	return leased, unavailable(failed)
}

// unavailable is err, of nodes that did not answer in time.
func unavailable(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	return err
}

// nodes are a shard of each node that leads some, as far as that is known.
func (s *Service) nodes(ctx context.Context) (of [][]key.Shard) {
	known, cancel := context.WithCancel(ctx)
	cancel()
	seen := map[string]bool{}
	for _, sh := range s.o.Store.Numbered() {
		if node, err := s.o.Peers.Leader(known, sh); err == nil && !seen[node] {
			seen[node] = true
			of = append(of, []key.Shard{sh})
		}
	}
	return of
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
		at, of := time.Now(), map[string]int{}
		counting, cancel := context.WithTimeout(ctx, askMax/2) // NB: a shard without a leader is waited for, and the time is that of the call
		_, err := s.kinds.running.Merge(counting, &[]string{typ}, fanout.Merging[runs]{Order: inOrder[runs], Ahead: 1}, func(r runs) error {
			of[r.Workflow] += r.Count
			return nil
		})
		cancel()
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

// changed is what an item has come to.
type changed struct {
	At    int
	Error json.RawMessage `json:",omitempty"` // as fanout.ErrorText has it; nil: it is done
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

// lingerFor is how long the rings of other nodes are followed when no call waits any more.
const lingerFor = 10 * time.Second

// followLocked has this node told of the jobs of all others, for one more call that waits.
func (k *kinds) followLocked(s *Service) {
	k.waiting++
	if k.linger != nil {
		k.linger.Stop()
		k.linger = nil
	}
	if k.unfollow != nil || s.stopped.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.stopped)
	k.unfollow = cancel
	s.following.Go(func() {
		for ctx.Err() == nil {
			err := k.rings.Follow(ctx, nil, func([]key.Shard) *struct{} { return &struct{}{} }, func(typ string) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.wakeLocked(typ)
				return nil
			})
			if err != nil && ctx.Err() == nil {
				wait.Sleep(ctx, countedFor) // a shard has no leader
			}
		}
	})
}

func (k *kinds) ignoredLocked(s *Service) {
	if k.waiting--; k.waiting > 0 || k.unfollow == nil {
		return
	}
	k.linger = time.AfterFunc(lingerFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.waiting == 0 && k.unfollow != nil {
			k.unfollow()
			k.unfollow, k.linger = nil, nil
		}
	})
}

// ringsHere yields the types of jobs that there are, and then of those that come.
func (s *Service) ringsHere(ctx context.Context, shards []key.Shard, _ *struct{}, yield func(string) error) (end struct{}, err error) {
	f := &follower{rung: make(chan struct{}, 1), types: map[string]struct{}{}}
	s.mu.Lock()
	for typ, k := range s.types {
		if len(k.lines) > 0 {
			f.types[typ] = struct{}{}
		}
	}
	s.kinds.followers[f] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.kinds.followers, f)
	}()
	for {
		if err := s.leads(shards); err != nil {
			return end, err
		}
		s.mu.Lock()
		types := slices.Collect(maps.Keys(f.types))
		clear(f.types)
		s.mu.Unlock()
		for _, typ := range types {
			if err := yield(typ); err != nil {
				return end, err
			}
		}
		select {
		case <-f.rung:
		case <-ctx.Done():
			return end, ctx.Err()
		case <-s.stopped.Done():
			return end, failure.ErrUnavailable
		}
	}
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
