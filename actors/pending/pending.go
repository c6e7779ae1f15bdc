// Package pending lists what waits in the whole store: deliveries that have not arrived, incidents, and timers.
//
// A list is not of one moment: each page has what is there when it is read, in the order of the keys, so nothing is
// left out that is there from the first page to the last. In a cluster a page has everything that was acknowledged
// before it was asked for.
package pending

import (
	"cmp"
	"context"
	"errors"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/actors/outbox"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Lists reads them.
type Lists struct {
	store   *persistence.Store
	queries *query.Service
	catalog *catalog.Catalog
	outbox  *outbox.Service // nil: nothing leaves
	clock   func() time.Time
	kind    *fanout.Kind[asked, row, struct{}] // nil: this node has all shards
}

// New returns the lists of a store, which are merged of what the leaders of all shards have, unless f is nil.
func New(s *persistence.Store, q *query.Service, c *catalog.Catalog, o *outbox.Service, clock func() time.Time, f *fanout.Service) *Lists {
	l := &Lists{store: s, queries: q, catalog: c, outbox: o, clock: clock}
	if f != nil {
		l.kind = fanout.NewKind(f, "pending", l.readPart)
	}
	return l
}

// Deliveries lists what has not left, or not got there, of all instances.
func (l *Lists) Deliveries(ctx context.Context, req *DeliveryList) (page *DeliveryPage, err error) {
	page = &DeliveryPage{}
	in := &asked{List: deliveries, User: userOf(req.Caller), State: req.State, Limit: req.Limit}
	page.Next, err = l.page(ctx, query.List{"outbox", string(req.State)}, req.Cursor, in, func(r row) error {
		d, err := l.deliveryOf(r.Key, r.Value)
		page.Deliveries = append(page.Deliveries, d)
		return err
	})
	if err == nil {
		err = l.hideErrors(ctx, req.Caller, page.Deliveries)
	}
	return page, failure.In("list", "the outbox", err)
}

// Incidents lists what failed. The errors are those of Deliveries.
func (l *Lists) Incidents(ctx context.Context, req *IncidentList) (page *IncidentPage, err error) {
	page = &IncidentPage{}
	in := &asked{List: incidents, User: userOf(req.Caller), Limit: req.Limit}
	page.Next, err = l.page(ctx, query.List{"incidents"}, req.Cursor, in, func(r row) error {
		in, err := incidentOf(r.Key, r.Value)
		page.Incidents = append(page.Incidents, in)
		return err
	})
	if err == nil {
		err = l.hide(ctx, req.Caller, page.Incidents)
	}
	return page, failure.In("list", "incidents", err)
}

// Timers lists the timers that are running, of all instances: what is due next comes first. Those of instances that
// cannot be read are left out.
func (l *Lists) Timers(ctx context.Context, req *TimerList) (*TimerPage, error) {
	page, err := &TimerPage{}, error(nil)
	in := &asked{List: timers, User: req.User, Workflow: req.Workflow, Limit: req.Limit}
	page.Next, err = l.page(ctx, query.List{"timers", req.Workflow}, req.Cursor, in, func(r row) error {
		page.Timers = append(page.Timers, *r.Timer)
		return nil
	})
	if err != nil {
		return nil, failure.In("list", "timers", err)
	}
	return page, nil
}

type timersOf struct {
	id  key.ID
	all []statemachine.Timer
}

// timerOf is the timer of a row; nil when its instance cannot be read. last is the instance that was read before.
func (l *Lists) timerOf(from *query.Reader, last *timersOf, workflow string, rowKey []byte) (*Timer, error) {
	_, k, ok := key.ParseTimer(rowKey)
	if !ok {
		return nil, failure.OfStore(persistence.ErrCorrupt)
	}
	if last.id != k.ID {
		in, err := query.LoadInstance(from, l.catalog, l.store.ShardOf(k.ID), workflow, k.ID)
		switch {
		case errors.Is(err, failure.ErrNotFound), errors.Is(err, failure.ErrExecution):
			return nil, nil
		case err != nil:
			return nil, err
		}
		*last = timersOf{k.ID, in.State.Timers()}
	}
	id := statemachine.ElementID{Sequence: k.Sequence, Number: k.Number}
	for _, t := range last.all {
		if t.ID == id {
			return &Timer{ID: instanceid.PartText(k.ID, k.Sequence, k.Number), Workflow: workflow, InstanceID: instanceid.Text(k.ID), Timer: t}, nil
		}
	}
	return nil, nil
}

// OfInstance returns the deliveries of an instance.
func (l *Lists) OfInstance(id key.ID) (out []Delivery, err error) {
	err = l.store.ScanRanges(func(key, value []byte) error {
		d, err := l.deliveryOf(key, value)
		out = append(out, d)
		return err
	}, key.Range{Prefix: key.DeliveryPrefix(nil, l.store.ShardOf(id), id)})
	return out, failure.OfStore(err)
}

// Incident returns an incident where its shard is led: failure.ErrNotFound, failure.ErrNotLeader.
func (l *Lists) Incident(id string) (in Incident, err error) {
	instance, sequence, number, ok := instanceid.ParsePart(id)
	if !ok {
		return in, failure.ErrNotFound
	}
	sh := l.store.ShardOf(instance)
	epoch := l.store.Epoch(sh)
	if epoch == 0 {
		return in, failure.Elsewhere(uint16(sh))
	}
	key := key.Incident(nil, sh, instance, sequence, number)
	stored, err := l.store.Load(key)
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		if err := l.store.AwaitLed(context.Background(), sh, epoch); err != nil { // NB: another node may have it by now
			return in, failure.OfStore(err)
		}
		return in, failure.ErrNotFound
	case err != nil:
		return in, failure.OfStore(err)
	}
	return incidentOf(key, stored)
}

func incidentOf(rowKey, value []byte) (Incident, error) {
	k, ok := key.Parse(rowKey)
	if !ok {
		return Incident{}, damaged(nil)
	}
	out := Incident{ID: instanceid.PartText(k.ID, k.Number, k.Place)}
	row, err := incident.Parse(value)
	if err != nil {
		return Incident{}, damaged(err)
	}
	out.Row, out.InstanceID = *row, row.Instance
	if row.Kind == incident.Event {
		out.Timer = statemachine.ElementID{Sequence: k.Number, Number: k.Place}
	}
	return out, nil
}

func (l *Lists) deliveryOf(rowKey, value []byte) (out Delivery, err error) {
	k, ok := key.ParseDelivery(rowKey)
	d, err := outbox.Parse(value)
	if err != nil || !ok {
		return out, damaged(err)
	}
	out = Delivery{ID: outbox.IDOf(k), InstanceID: instanceid.Text(k.ID), Delivery: d}
	out.Kind, out.Name = d.KindOf(k.Queue)
	if l.outbox != nil {
		out.URL = l.outbox.URL(k, d)
	}
	return out, nil
}

func damaged(err error) error {
	return failure.Errorf(failure.ErrExecution, "a row cannot be read: %w", errors.Join(err, persistence.ErrCorrupt))
}

// Delivery is a row of the outbox.
type Delivery struct {
	ID         string
	InstanceID string
	// Kind is "webhook", "mail" or "invoke", a message between a parent and its child. Name is that of the webhook, or the
	// workflow that the message goes to; "" for a mail.
	Kind, Name string
	URL        string // where it goes; "" for a mail, and where it is unknown
	*outbox.Delivery
}

// DeliveryList asks for a part of the outbox.
type DeliveryList struct {
	Caller *identity.Principal // Caller asks: of instances that they may not read, LastError has no data
	State  outbox.State        // 0: all
	Cursor string              // DeliveryPage.Next of the page before; empty is the first page
	Limit  int
}

// DeliveryPage is a part of the outbox, in the order of shards and instances.
type DeliveryPage struct {
	Deliveries []Delivery
	Next       string // the cursor of the next page; empty when there is none
}

// Timer is an event that comes to an instance on its own, unless something else happens before.
type Timer struct {
	ID                   string
	Workflow, InstanceID string
	statemachine.Timer
}

// TimerList asks for a part of the timers that are running.
type TimerList struct {
	User     identity.UserID // User asks: users take turns
	Workflow string          // "": of all
	Cursor   string          // TimerPage.Next of the page before; empty is the first page
	Limit    int
}

// TimerPage is a part of the timers, in the order in which they are due.
type TimerPage struct {
	Timers []Timer
	Next   string // the cursor of the next page; empty when there is none
}

// Incident is something that failed. Callers who may not read the instance get HiddenReason and no values.
type Incident struct {
	ID         string
	InstanceID string // "": it was never created
	incident.Row
	Timer statemachine.ElementID // of the kind incident.Event: how the instance calls the event
}

// IncidentList asks for a part of the incidents.
type IncidentList struct {
	Caller *identity.Principal // Caller asks: of instances that they may not read, the incidents have no data
	Cursor string              // IncidentPage.Next of the page before; empty is the first page
	Limit  int
}

// IncidentPage is a part of the incidents, in the order of shards and instances.
type IncidentPage struct {
	Incidents []Incident
	Next      string // the cursor of the next page; empty when there is none
}

// HiddenReason stands for why an event or a delivery failed, which may quote data of the instance.
const HiddenReason = "the reason is shown to users who can read the instance"

// Reason is why an event failed, for a caller who may read the instance or not.
func Reason(reason string, mayRead bool) string {
	if mayRead {
		return reason
	}
	return HiddenReason
}

// hide takes out of incidents what their caller may not see: an operator learns that something failed, where, for whom
// and how often, and data only of instances that they may read.
func (l *Lists) hide(ctx context.Context, p *identity.Principal, incidents []Incident) error {
	var with []*Incident // data
	for k := range incidents {
		if incidents[k].hasData() {
			with = append(with, &incidents[k])
		}
	}
	of := func(k int) [2]string { return [2]string{with[k].Workflow, with[k].InstanceID} }
	may, err := l.readable(ctx, p, len(with), of)
	for k, in := range with {
		if err == nil && !may[of(k)] {
			in.Error, in.Read = HiddenReason, nil
		}
	}
	return err
}

// hideErrors takes data out of what was wrong with deliveries, where the caller may not read the instance.
func (l *Lists) hideErrors(ctx context.Context, p *identity.Principal, all []Delivery) error {
	var failed []*Delivery
	for k := range all {
		if all[k].LastError != "" {
			failed = append(failed, &all[k])
		}
	}
	of := func(k int) [2]string { return [2]string{failed[k].Workflow, failed[k].InstanceID} }
	may, err := l.readable(ctx, p, len(failed), of)
	for k, d := range failed {
		if err != nil || !may[of(k)] {
			d.LastError = cmp.Or(d.Cause(d.Kind), HiddenReason)
		}
	}
	return err
}

// readable tells which of n instances a caller may read.
func (l *Lists) readable(ctx context.Context, p *identity.Principal, n int, instance func(int) [2]string) (map[[2]string]bool, error) {
	may := map[[2]string]bool{}
	if p == nil || n == 0 {
		return may, nil
	}
	caller := catalog.CallerOf(p)
	names := make([]query.Name, n)
	for k := range names {
		of := instance(k)
		names[k].Workflow = of[0]
		names[k].ID, _ = instanceid.Parse(of[1]) // NB: there is none without an id
	}
	err := l.queries.ReadInstances(ctx, p.ID, names, func(from query.Loader) error {
		for k := range n {
			of := instance(k)
			if _, asked := may[of]; asked {
				continue
			}
			ok, err := l.mayRead(from, caller, of[0], of[1])
			if may[of] = ok; err != nil {
				return err
			}
		}
		return nil
	})
	for of, shown := range may {
		if rules, gone := l.catalog.Newest(of[0]); err == nil && shown && gone == nil {
			err = l.queries.AuditReads(ctx, p, rules)
		}
	}
	return may, err
}

// hasData reports whether it may quote data of the instance: the error of others is the service's own.
func (in *Incident) hasData() bool {
	return in.Workflow != incident.OfService && (in.Kind == incident.Event || in.Kind == incident.Expression)
}

// An instance that was never created, or that is gone, can be read by those who can read all of its workflow.
func (l *Lists) mayRead(from query.Loader, c *statemachine.Caller, workflow, instance string) (bool, error) {
	rules, err := l.catalog.Newest(workflow)
	if err == nil {
		if r, ok := from.(*query.Reader); ok {
			if err := r.Step(); err != nil {
				return false, err
			}
		}
		switch now := l.clock(); rules.ReadRight(c, now) {
		case statemachine.Denied:
			return false, nil
		case statemachine.ByInstance:
			id, ok := instanceid.Parse(instance)
			if !ok {
				return false, nil
			}
			var in *query.Instance
			if in, err = query.LoadInstance(from, l.catalog, l.store.ShardOf(id), workflow, id); err == nil {
				return rules.MayRead(statemachine.View{Instance: &in.State, Of: in.Of}, c, now), nil
			}
		default:
			return true, nil
		}
	}
	if errors.Is(err, failure.ErrNotFound) || errors.Is(err, failure.ErrExecution) {
		err = nil
	}
	return false, err
}
