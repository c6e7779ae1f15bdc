package clause

import (
	"errors"

	"troupe/statemachine/cron"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// MaxSchedules bounds the schedules of a definition.
const MaxSchedules = 100

// Schedules reads the mapping of names to schedules.
func (b *Reader) Schedules(n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of names")
		return
	}
	if len(n.Fields) > MaxSchedules && !b.Stored { // it was no fault once
		b.Advise(n.Fields[MaxSchedules].Key, "one schedule with a shorter pause, or several workflows", "a definition has at most %d schedules, and this one has %d", MaxSchedules, len(n.Fields))
		return
	}
	for _, f := range n.Fields {
		if !chart.IsIdentifier(f.Key.Text) {
			b.Add(f.Key, "%q is not a name of a schedule: letters, digits and . _ ~ -", data.Shorten(f.Key.Text))
			continue
		}
		if s := b.schedule(f); s != nil {
			b.Definition.Schedules = append(b.Definition.Schedules, s)
		}
	}
}

// Retention reads how long an instance is kept that is done.
func (b *Reader) Retention(n *document.Node) {
	if n == nil || !b.Mapping(n, RetentionKeys) {
		return
	}
	at := n.Field("done")
	if at == nil {
		b.Add(n, "retention needs \"done\": how long an instance is kept after it is done")
		return
	}
	before := b.Count()
	b.Definition.Retention = b.constantDelay(at)
	if b.Count() == before && b.Definition.Retention <= 0 {
		b.Add(at, "%q: must be longer than 0", data.Shorten(at.Text)).Suggestion = "such as P90D"
	}
}

func (b *Reader) schedule(f document.Field) *chart.Schedule {
	if !b.Mapping(f.Value, ScheduleKeys) {
		return nil
	}
	s := &chart.Schedule{Name: f.Key.Text, Zone: "UTC", Missed: OneOf(b, f.Value.Field("missed"), MissedWords)}
	at := f.Value.Field("cron")
	if at == nil {
		b.Add(f.Value, "a schedule needs \"cron\"")
		return nil
	}
	s.Cron = b.Text(at)
	var err error
	if s.Spec, err = cron.Parse(s.Cron); err != nil && at.Kind == document.String {
		if f := b.Add(at, "%q: %v", data.Shorten(s.Cron), err); errors.Is(err, cron.ErrNever) {
			f.Suggestion = "the months that it names have no such day"
		}
	}
	if at := f.Value.Field("zone"); at != nil {
		s.Zone = b.Text(at)
		if has := b.Options.HasZone; has != nil && !has(s.Zone) {
			b.Add(at, "unknown zone %q", data.Shorten(s.Zone)).Suggestion = "a name of the IANA database, such as Europe/Berlin"
		}
	}
	if at := f.Value.Field("as"); at != nil {
		s.AsLine = at.Line
		if s.As = b.Text(at); !chart.IsIdentifier(s.As) {
			b.Add(at, "%q cannot be a user", data.Shorten(s.As))
		}
	}
	if at := f.Value.Field("create"); at != nil && b.Mapping(at, DocumentKeys) {
		for key, to := range map[string]**chart.Template{"svcPublic": &s.Public, "svcPrivate": &s.Private} {
			if part := at.Field(key); part != nil {
				*to = b.Template(part)
			}
		}
	}
	return s
}
