package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/actors/failure"
	"troupe/actors/job"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Bounds of requests (gateway/INTERFACE.md, "Limits of inputs").
const (
	TypesMax        = 100
	WorkerBytesMax  = 128
	ItemsMax        = 1000
	MessageBytesMax = 4 << 10 // what is longer is cut
)

var activationShape = parse.NewShape("",
	parse.Field{Name: "types", Required: true}, parse.Field{Name: "worker", Kind: data.String}, parse.Field{Name: "max"},
	parse.Field{Name: "lease"}, parse.Field{Name: "wait"},
)

func parseActivation(body []byte) (*job.Activation, error) {
	value, err := parse.Body(body)
	if err != nil {
		return nil, err
	}
	var m [5]data.Value
	if err := activationShape.Read(value, m[:]); err != nil {
		return nil, err
	}
	a := &job.Activation{Max: 1, Worker: m[1].Text()}
	if a.Types, err = parseTypes(m[0]); err != nil {
		return nil, err
	}
	if len(a.Worker) > WorkerBytesMax {
		return nil, parse.Malformed(`"worker" must not be longer than %d bytes`, WorkerBytesMax)
	}
	if m[2] != nil {
		n, ok := m[2].Int64()
		if !ok || n < 1 || n > job.ActivatedMax {
			return nil, parse.Malformed(`"max" must be a whole number from 1 to %d`, job.ActivatedMax)
		}
		a.Max = int(n)
	}
	if m[3] != nil {
		if a.Lease, err = parseDuration(m[3], "lease", job.LeaseMin, durationMax); err != nil {
			return nil, err
		}
	}
	if m[4] != nil {
		if a.Wait, err = parseDuration(m[4], "wait", 0, job.WaitMax); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func parseTypes(v data.Value) (types []string, err error) {
	if v.Kind() != data.Array {
		return nil, parse.Malformed(`"types" must be an array of strings, not %s`, parse.WithArticle(v.Kind()))
	}
	for i, e := range v.Elements() {
		text, err := parse.StringMember(e, fmt.Sprintf("types[%d]", i))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(types, text) {
			types = append(types, text)
		}
		if len(types) > TypesMax {
			break
		}
	}
	if len(types) == 0 || len(types) > TypesMax {
		return nil, parse.Malformed(`"types" must have 1 to %d types`, TypesMax)
	}
	return types, nil
}

// durationMax bounds what a type's own bounds bound further.
const durationMax = 365 * 24 * time.Hour

// parseDuration reads a duration of ISO 8601.
func parseDuration(v data.Value, name string, least, most time.Duration) (time.Duration, error) {
	text, err := parse.StringMember(v, name)
	if err != nil {
		return 0, err
	}
	d, err := statemachine.ParseDelay(text)
	if err != nil || !strings.HasPrefix(text, "P") {
		return 0, parse.Malformed("%q must be a duration of ISO 8601, such as PT20S, not %s", name, parse.Quote(text))
	}
	switch {
	case d < least && most == durationMax:
		return 0, parse.Malformed("%q must be at least %s", name, isoSeconds(least))
	case d < least || d > most:
		return 0, parse.Malformed("%q must be from %s to %s", name, isoSeconds(least), isoSeconds(most))
	}
	return d, nil
}

func isoSeconds(d time.Duration) string { return fmt.Sprintf("PT%dS", int(d.Seconds())) }

var (
	jobID      = parse.Field{Name: "jobId", Kind: data.String, Required: true}
	lease      = parse.Field{Name: "lease", Kind: data.String, Required: true}
	itemsShape = parse.NewShape("", parse.Field{Name: "jobs", Required: true})
	itemShapes = map[job.Action]*parse.Shape{
		job.Complete: parse.NewShape("", jobID, lease, parse.Field{Name: "output"}),
		job.Fail: parse.NewShape("", jobID, lease, parse.Field{Name: "message", Kind: data.String}, parse.Field{Name: "retryIn"},
			parse.Field{Name: "final"}, parse.Field{Name: "later"}),
		job.Extend: parse.NewShape("", jobID, lease, parse.Field{Name: "by", Required: true}),
		job.Retry:  parse.NewShape("", jobID),
		job.Cancel: parse.NewShape("", jobID),
	}
)

// parseItems reads {"jobs": […]}. A member that is wrong refuses all: it is the program that has to change.
func parseItems(action job.Action, body []byte) ([]job.Item, error) {
	value, err := parse.Body(body)
	if err != nil {
		return nil, err
	}
	var m [1]data.Value
	if err := itemsShape.Read(value, m[:]); err != nil {
		return nil, err
	}
	if m[0].Kind() != data.Array {
		return nil, parse.Malformed(`"jobs" must be an array, not %s`, parse.WithArticle(m[0].Kind()))
	}
	var items []job.Item
	for i, v := range m[0].Elements() {
		if i == ItemsMax {
			items = nil
			break
		}
		item, err := parseItem(action, v)
		if err != nil {
			return nil, parse.Malformed("jobs[%d]: %s", i, failure.Of(err).Reason)
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		return nil, parse.Malformed(`"jobs" must have 1 to %d jobs`, ItemsMax)
	}
	return items, nil
}

func parseItem(action job.Action, v data.Value) (item job.Item, err error) {
	if v.Kind() != data.Object {
		return item, parse.Malformed("a job must be a JSON object, not %s", parse.WithArticle(v.Kind()))
	}
	var m [6]data.Value
	if err := itemShapes[action].Read(v, m[:]); err != nil {
		return item, err
	}
	item = job.Item{JobID: m[0].Text(), Lease: m[1].Text()}
	switch action {
	case job.Complete:
		item.Output = slices.Clone(m[2]) // NB: whoever keeps it must not keep the whole body
	case job.Extend:
		item.By, err = parseDuration(m[2], "by", job.LeaseMin, durationMax)
	case job.Fail:
		item.Message = data.Clip(m[2].Text(), MessageBytesMax)
		if m[3] != nil {
			var in time.Duration
			in, err = parseDuration(m[3], "retryIn", 0, durationMax)
			item.RetryIn = &in
		}
		if err == nil {
			item.Final, err = parseFlag(m[4], "final")
		}
		if err == nil {
			item.Later, err = parseFlag(m[5], "later")
		}
		if err == nil && item.Later && (item.Final || item.RetryIn != nil) {
			err = parse.Malformed(`"later" excludes "final" and "retryIn"`)
		}
	}
	return item, err
}

func parseFlag(v data.Value, name string) (bool, error) {
	if v != nil && v.Kind() != data.Bool {
		return false, parse.Malformed("%q must be true or false, not %s", name, parse.WithArticle(v.Kind()))
	}
	return string(v) == "true", nil
}
