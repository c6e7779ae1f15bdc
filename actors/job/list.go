package job

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
)

// ListMax is the most jobs of a Page.
const ListMax = 1000

// scannedMax is how many rows a part of a page looks at.
const scannedMax = 100_000

// part is a job of a page; without it, the place behind which there may be more.
type part struct {
	Place []byte
	Job   *Listed
}

// wanted is what a page shall have.
type wanted struct {
	Query
	After []byte // the place at which it begins; nil: at the beginning
}

// lister lists the jobs of all nodes.
type lister struct {
	*Options
	kind *fanout.Kind[wanted, part, struct{}] // nil: standalone
}

// List returns a page of jobs, in the order of their shards and instances: for who holds one of the privileges mod-jobs and
// mod-workflows. failure.ErrNotFound: there is no job Query.JobID.
func (l *lister) List(ctx context.Context, q *Query) (*Page, error) {
	if err := mayList(q.Caller); err != nil {
		return nil, err
	}
	if q.Limit < 1 || q.Limit > ListMax {
		return nil, failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", ListMax)
	}
	in := &wanted{Query: *q}
	var only []key.Shard
	if q.JobID != "" {
		name, ok := parseID(q.JobID)
		if !ok {
			return nil, failure.ErrNotFound
		}
		only = []key.Shard{l.Store.ShardOf(name.ID)}
	}
	of := query.List{"jobs", q.Type, string(q.State), q.WorkflowID, strconv.Itoa(len(q.JobID))}
	if q.Cursor != "" {
		var err error
		if in.After, err = of.Position(q.Cursor); err != nil {
			return nil, err
		}
		if len(in.After) < 2 {
			return nil, query.ErrCursor
		}
	}
	page := &Page{}
	take := func(p part) error {
		if p.Job == nil || len(page.Jobs) == q.Limit {
			page.Next = of.Cursor(p.Place)
			return fanout.ErrEnough
		}
		page.Jobs = append(page.Jobs, *p.Job)
		return nil
	}
	err := l.listParts(ctx, in, only, take)
	if err == nil && q.JobID != "" && len(page.Jobs) == 0 {
		err = failure.ErrNotFound
	}
	return page, err
}

func mayList(caller *identity.Principal) error {
	if caller != nil && !caller.Has(identity.Jobs) && !caller.Has(identity.Workflows) {
		return failure.Needs(identity.Jobs + " or " + identity.Workflows)
	}
	return nil
}

func (l *lister) listParts(ctx context.Context, in *wanted, only []key.Shard, take func(part) error) error {
	var err error
	if l.kind != nil {
		order := func(a, b part) int { return bytes.Compare(a.Place, b.Place) }
		_, err = l.kind.Merge(ctx, in, fanout.Merging[part]{Shards: only, Order: order, Ahead: in.Limit + 2}, take)
	} else {
		if only == nil {
			only = l.Store.Numbered()
		}
		_, err = l.listHere(ctx, only, in, take)
	}
	if errors.Is(err, fanout.ErrEnough) {
		err = nil
	}
	return err
}

// listHere gives at most a job more than the page has, or a mark.
func (l *lister) listHere(ctx context.Context, shards []key.Shard, in *wanted, yield func(part) error) (end struct{}, err error) {
	var user identity.UserID
	if in.Caller != nil {
		user = in.Caller.ID
	}
	var parts []part
	err = l.Queries.Read(ctx, shards, user, func(from *query.Reader) error {
		p := &listing{Options: l.Options, in: in, from: from}
		for _, sh := range from.Shards() {
			if err := p.shard(sh); err != nil {
				return err
			}
			if p.isOver {
				break
			}
		}
		parts = p.parts
		return nil
	})
	for _, p := range parts {
		if err != nil {
			break
		}
		if j := p.Job; j != nil && in.JobID != "" && (in.Caller != nil && !l.MayRead(in.Caller, j.WorkflowID, j.InstanceID)) {
			j.Data = nil
		}
		if j := p.Job; j != nil && j.Message != "" && in.Caller != nil && !in.Caller.Has(identity.Jobs) && !l.MayRead(in.Caller, j.WorkflowID, j.InstanceID) {
			j.Message = "" // NB: it may tell of the data, as that of an incident
		}
		err = yield(p)
	}
	return end, err
}

type listing struct {
	*Options
	in      *wanted
	from    *query.Reader
	parts   []part
	scanned int
	isOver  bool
}

func (l *listing) shard(sh key.Shard) error {
	of := key.Range{Prefix: key.JobsPrefix(nil, sh, key.JobRow)}
	place := binary.BigEndian.AppendUint16(nil, uint16(sh))
	if l.in.JobID != "" {
		name, _ := parseID(l.in.JobID)
		of.Prefix = name.Key(nil, sh, key.JobRow)
	} else if len(l.in.After) >= 2 {
		switch order := bytes.Compare(place, l.in.After[:2]); {
		case order < 0:
			return nil
		case order == 0:
			of.From = l.in.After[2:]
		}
	}
	var stopped error
	err := l.from.ScanRanges(func(k, value []byte) error {
		if stopped = l.from.Step(); stopped != nil {
			return stopped
		}
		at := append(bytes.Clone(place), k[len(key.JobsPrefix(nil, sh, key.JobRow)):]...)
		if l.scanned++; len(l.parts) > l.in.Limit || l.scanned > scannedMax {
			l.parts, l.isOver, stopped = append(l.parts, part{Place: at}), true, errEnough
			return stopped
		}
		j, err := l.job(sh, k, value)
		if stopped = err; j != nil {
			l.parts = append(l.parts, part{at, j})
		}
		return stopped
	}, of)
	if errors.Is(stopped, errEnough) {
		return nil
	}
	if stopped != nil {
		return stopped
	}
	return failure.OfStore(err)
}

// job returns a job that is wanted, nil for another one.
func (l *listing) job(sh key.Shard, rowKey, value []byte) (*Listed, error) {
	name, ok := key.ParseJob(rowKey)
	r, err := parseRow(value)
	if !ok || err != nil {
		return nil, failure.OfStore(errors.Join(persistence.ErrCorrupt, err))
	}
	if l.in.Type != "" && l.in.Type != r.Type || l.in.WorkflowID != "" && l.in.WorkflowID != r.Workflow {
		return nil, nil
	}
	o := r.offer(name)
	a, err := loadAttempt(l.from.Load, sh, &o)
	j := l.listed(name, &r, &a)
	if err != nil || l.in.State != "" && l.in.State != j.State {
		return nil, err
	}
	if l.in.JobID != "" {
		j.Data = bytes.Clone(r.Data)
	}
	return j, nil
}

// OfInstance returns the jobs that an instance waits for, without their data, where its shard is led.
func (l *lister) OfInstance(id key.ID) (jobs []Listed, err error) {
	sh := l.Store.ShardOf(id)
	err = l.Store.Scan(key.JobsOf(nil, sh, id), func(k, value []byte) error {
		name, _ := key.ParseJob(k)
		r, err := parseRow(value)
		o := r.offer(name)
		a, failed := loadAttempt(l.Store.Load, sh, &o)
		jobs = append(jobs, *l.listed(name, &r, &a))
		return errors.Join(err, failed)
	})
	return jobs, failure.OfStore(err)
}

func (o *Options) listed(name key.Job, r *row, a *attempt) *Listed {
	of := r.offer(name)
	j := &Listed{
		JobID: IDOf(name.ID, elementOf(name)), Type: r.Type, WorkflowID: r.Workflow, Version: r.Version, InstanceID: instanceid.Text(name.ID),
		StateMachineID: r.Machine, NodeID: r.Node, Attempts: a.Attempts, AttemptsLeft: left(o.policyOf(&of).RetryLimit, a.Attempts),
		Priority: r.Priority, Created: r.Created, Worker: a.Worker, Message: a.Message, State: Waiting,
	}
	switch a.State {
	case leased:
		j.State, j.Deadline = Running, a.At
	case failing, failed:
		j.State, j.AttemptsLeft = Failed, 0
	case waits:
		if a.At.After(o.Clock()) {
			j.Due = a.At
		}
	}
	return j
}
