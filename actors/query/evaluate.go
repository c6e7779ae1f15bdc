package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// Rights come before the filter, so that the time of a query reveals nothing of a hidden instance.
func (q *query) evaluate(c *candidate) (show bool, err error) {
	if c.record == nil {
		c.record, err = q.snapshot.Load(key.Record(nil, q.service.o.Store.ShardOf(c.id), q.workflowID, c.id))
		if errors.Is(err, persistence.ErrNotFound) {
			return false, nil // an id that the filter names
		}
		if err != nil {
			return false, failure.OfStore(err)
		}
	}
	if err := q.chargeBytes(len(c.record)); err != nil {
		return false, err
	}
	q.explain.RecordsRead++
	q.name = instanceid.Text(c.id)
	if q.record, err = statemachine.ParseRecord(c.record); err != nil {
		q.service.damaged.Add(1)
		return false, failure.Errorf(failure.ErrExecution, "instance %s: %w", q.name, err)
	}
	if q.req.Version != 0 && q.record.Version != q.req.Version {
		return false, nil
	}
	if q.right == statemachine.ByInstance {
		ok, err := q.mayRead()
		if err != nil || !ok {
			return false, err
		}
	}
	d := documentOf(q.record)
	d.ID, d.WorkflowID = q.name, q.workflowID
	d.History, d.Ended = func() data.Value { return q.history(c) }, q.ended
	if !q.filter.Match(d) || q.failed != nil {
		return false, q.failed
	}
	if q.byValue && !first(q.sort.Field().Keys(d), c.value, q.down) {
		return false, nil // it has, or had, its position elsewhere in the list
	}
	return true, nil
}

// documentOf is what filters see of a stored instance, without what is not in its record.
func documentOf(r statemachine.Record) filter.Document {
	return filter.Document{Key: r.Key, States: r.States, Public: r.Public, Private: r.Private}
}

// An instance whose definition cannot be read is shown to nobody whose rights depend on it, and the list goes on;
// Catalog.Readable names the definition.
func (q *query) mayRead() (bool, error) {
	of, err := q.service.o.Catalog.Version(q.workflowID, q.record.Version)
	if errors.Is(err, failure.ErrExecution) {
		q.service.damaged.Add(1)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	in, err := of.Restore(q.name, q.record)
	if err != nil {
		return false, failure.Errorf(failure.ErrExecution, "instance %s: %w", q.name, err)
	}
	return q.rules.MayRead(statemachine.View{Instance: &in, Of: of}, q.caller, q.now), nil
}

func (q *query) show(c *candidate) error {
	if len(q.out.items) == 0 {
		q.bytes = q.bytes[:0]
	}
	before := len(q.bytes)
	b := append(q.bytes, `{"_id":"`...)
	b = append(b, q.name...)
	b = append(b, `","workflowId":"`...)
	b = append(b, q.workflowID...)
	b = append(b, `","svcPublic":`...)
	b = append(b, q.record.Public...)
	if q.fields.private {
		b = append(b, `,"svcPrivate":`...)
		b = append(b, q.record.Private...)
	}
	if q.fields.history {
		b = q.appendHistory(b, c)
	}
	b = append(b, `,"states":`...)
	b = append(b, q.record.States...)
	if q.fields.redirect && q.record.Redirect != "" {
		b = append(b, `,"svcRedirect":`...)
		b = data.AppendString(b, q.record.Redirect)
	}
	if q.record.Key != "" {
		b = append(b, `,"key":`...)
		b = data.AppendString(b, q.record.Key)
	}
	if q.record.IsEnded() {
		b = append(b, `,"cancelled":true`...)
	}
	if q.fields.title {
		b = append(b, `,"title":`...)
		b = data.AppendString(b, q.title())
	}
	q.bytes = append(b, '}')
	if q.failed != nil {
		return q.failed
	}
	q.explain.Matched++
	q.shown = len(q.bytes) - before
	f := found{text: q.bytes[before:len(q.bytes):len(q.bytes)]}
	if q.isPart {
		f.at = &position{id: c.id, value: bytes.Clone(c.value)}
	}
	return q.out.add(&q.throttle, f, q.shown)
}

const titleSteps = checkEvery / 16

// What goes wrong is left in q.failed.
func (q *query) title() string {
	of, err := q.service.o.Catalog.Version(q.workflowID, q.record.Version)
	if err != nil {
		return q.rules.Name // NB: the list goes on without a definition that cannot be read
	}
	if !of.IsTitled() {
		return of.Name
	}
	in, err := of.Restore(q.name, q.record)
	if err != nil {
		return of.Name
	}
	if err := q.chargeSteps(titleSteps); err != nil {
		q.failed = err
	}
	return cmp.Or(of.Title(&in).For(q.req.Languages...), of.Name)
}

// What goes wrong is left in q.failed.
func (q *query) history(c *candidate) data.Value {
	out := data.Value("[")
	q.eachEntry(c, func(entry data.Value) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, entry...)
	})
	return append(out, ']')
}

func (q *query) appendHistory(b []byte, c *candidate) []byte {
	var joined history.Joined
	q.eachEntry(c, func(entry data.Value) { joined = joined.With(entry) })
	b = append(append(append(b, `,"svcHistory":[`...), joined.Text...), ']')
	if joined.From > 1 {
		b = strconv.AppendUint(append(b, `,"historyFrom":`...), joined.From, 10)
	}
	return b
}

// What goes wrong is left in q.failed.
func (q *query) eachEntry(c *candidate, visit func(data.Value)) {
	var ended error
	sh := q.service.o.Store.ShardOf(c.id)
	reader := history.NewReader(q.snapshot, sh, c.id)
	err := q.snapshot.Scan(key.EntryPrefix(nil, sh, c.id), func(key, value []byte) error {
		entry, err := reader.Entry(binary.BigEndian.Uint64(key[len(key)-8:]), value)
		if err != nil {
			return err
		}
		if ended = q.chargeBytes(len(entry)); ended != nil {
			return ended
		}
		visit(entry)
		return nil
	})
	switch {
	case ended != nil:
		q.failed = ended
	case err != nil:
		q.failed = failure.OfStore(err)
	}
}

func (q *query) sorted(chosen plan) (iterator, error) {
	it := q.open(chosen, false, nil)
	out := &sortedList{}
	for {
		c, ok, err := q.next(it)
		if err != nil {
			return nil, errors.Join(err, it.close())
		}
		if !ok {
			break
		}
		show, err := q.evaluate(&c)
		if err != nil {
			return nil, errors.Join(err, it.close())
		}
		if !show {
			continue
		}
		value := sortValue(q.sort.Field().Keys(documentOf(q.record)), q.down)
		if q.after != nil && !isBehind(orderOf(value, c.id, q.after), q.down) {
			continue
		}
		out.all = append(out.all, candidate{id: c.id, value: bytes.Clone(value)})
	}
	slices.SortFunc(out.all, func(a, b candidate) int {
		order := orderOf(a.value, a.id, &position{b.value, b.id})
		if q.down {
			order = -order
		}
		return order
	})
	return out, it.close()
}

func orderOf(value []byte, id key.ID, p *position) int {
	if order := bytes.Compare(value, p.value); order != 0 {
		return order
	}
	return bytes.Compare(id[:], p.id[:])
}

type sortedList struct {
	all []candidate
	at  int
}

func (l *sortedList) next() (candidate, bool, error) {
	if l.at == len(l.all) {
		return candidate{}, false, nil
	}
	l.at++
	return l.all[l.at-1], true, nil
}

func (l *sortedList) close() error { return nil }

func (q *query) count(chosen plan) error {
	if q.req.Filter == "" && q.right == statemachine.Granted {
		n, err := q.total()
		q.end.Count = n
		return err
	}
	q.byValue = false
	it := q.open(chosen, false, nil)
	for {
		c, ok, err := q.next(it)
		show := false
		if err == nil && ok {
			show, err = q.evaluate(&c)
		}
		if err != nil {
			return errors.Join(err, it.close())
		}
		if !ok {
			return failure.OfStore(it.close())
		}
		if show {
			q.end.Count++
		}
	}
}
