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
	"troupe/statemachine"
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

// List returns a page of jobs, shard after shard, and in each by type and in the order in which they are given: for who holds one of the privileges mod-jobs and
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
	if l.in.JobID != "" {
		return l.one(sh)
	}
	of := key.Range{Prefix: key.JobsPrefix(nil, sh, key.JobOffer)}
	place := binary.BigEndian.AppendUint16(nil, uint16(sh))
	all := len(of.Prefix)
	if l.in.Type != "" {
		of.Prefix = key.OffersPrefix(nil, sh, l.in.Type)
	}
	if len(l.in.After) >= 2 {
		switch order := bytes.Compare(place, l.in.After[:2]); {
		case order < 0:
			return nil
		case order == 0 && len(l.in.After) >= 2+len(of.Prefix)-all: // NB: a cursor is of a list of the same type
			of.From = l.in.After[2+len(of.Prefix)-all:]
		}
	}
	var stopped error
	err := l.from.ScanRanges(func(k, value []byte) error {
		if stopped = l.from.Step(); stopped != nil {
			return stopped
		}
		at := append(bytes.Clone(place), k[all:]...)
		if l.scanned++; len(l.parts) > l.in.Limit || l.scanned > scannedMax {
			l.parts, l.isOver, stopped = append(l.parts, part{Place: at}), true, errEnough
			return stopped
		}
		j, err := l.offered(sh, k, value)
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

// one finds the job that is asked for by its id.
func (l *listing) one(sh key.Shard) error {
	name, _ := parseID(l.in.JobID)
	r, err := loadOpen(l.from.Load, sh, name)
	if errors.Is(err, failure.ErrNotFound) {
		return nil
	}
	var a attempt
	if err == nil {
		o := r.offer(name)
		a, err = loadAttempt(l.from.Load, sh, &o)
	}
	if err != nil {
		return err
	}
	if j := l.listed(name, &r, &a); l.isWanted(r.Type, r.Workflow, j.State) {
		j.Data = bytes.Clone(r.Data)
		l.parts = append(l.parts, part{nil, j})
	}
	return nil
}

// offered returns the job of an offer, nil when it is not wanted or has just ended.
func (l *listing) offered(sh key.Shard, offerKey, value []byte) (*Listed, error) {
	o, ok := key.ParseOffer(offerKey)
	a, err := parseAttempt(value)
	if !ok || err != nil {
		return nil, failure.OfStore(errors.Join(persistence.ErrCorrupt, err))
	}
	if !l.isWanted(o.Type, o.Workflow, a.shown()) {
		return nil, nil
	}
	r, err := loadOpen(l.from.Load, sh, o.Job)
	if errors.Is(err, failure.ErrNotFound) {
		return nil, nil
	}
	return l.listed(o.Job, &r, &a), err
}

func (l *listing) isWanted(typ, workflow string, state State) bool {
	q := &l.in.Query
	return (q.Type == "" || q.Type == typ) && (q.WorkflowID == "" || q.WorkflowID == workflow) && (q.State == "" || q.State == state)
}

// OfInstance returns jobs that an instance waits for, without their data, where its shard is led.
func (l *lister) OfInstance(of *Origin, open []statemachine.Job) (jobs []Listed, err error) {
	for i := range open {
		name, r := of.job(open[i].ID), of.row(&open[i])
		o := r.offer(name)
		a, err := loadAttempt(l.Store.Load, l.Store.ShardOf(of.Instance), &o)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, *l.listed(name, &r, &a))
	}
	return jobs, nil
}

// shown is the state of a job that has it as its last attempt.
func (a *attempt) shown() State {
	switch a.State {
	case leased:
		return Running
	case failing, failed:
		return Failed
	}
	return Waiting
}

func (o *Options) listed(name key.Job, r *row, a *attempt) *Listed {
	of := r.offer(name)
	j := &Listed{
		JobID: IDOf(name.ID, elementOf(name)), Type: r.Type, WorkflowID: r.Workflow, Version: r.Version, InstanceID: instanceid.Text(name.ID),
		StateMachineID: r.Machine, NodeID: r.Node, Attempts: a.Attempts, AttemptsLeft: left(o.policyOf(&of).RetryLimit, a.Attempts),
		Priority: r.Priority, Created: r.Created, Worker: a.Worker, Message: a.Message, State: a.shown(),
	}
	switch a.State {
	case leased:
		j.Deadline = a.At
	case failing, failed:
		j.AttemptsLeft = 0
	case waits:
		if a.At.After(o.Clock()) {
			j.Due = a.At
		}
	}
	return j
}
