package transfer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/inventory"
	"troupe/actors/message"
	"troupe/actors/transfer"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/statemachine"
)

const request = `
id: request
indexes: [svcPublic.n]
webhooks: {hook: }
create: {svcPublic: {type: object}}
stateMachines:
  main:
    initial: draft
    states:
      draft:
        entry: [{webhook: {to: hook, body: 1}}]
        after: {PT1H: sent}
        on: {note: {actions: [{assign: {svcPublic.n: '${event.data.n}'}}]}, submit: sent}
      sent: {task: {for: {users: [mary]}}, on: {done: end}}
      end: {type: final}
`

func pace(ctx context.Context, _ int) error { return ctx.Err() }

func silent(string) {}

func export(t *testing.T, r *workflowtest.Router) (lines []string, left []string) {
	t.Helper()
	require.NoError(t, r.Store.AwaitDurable())
	_, err := transfer.Export(t.Context(), r.Store, r.Catalog, pace, func(text json.RawMessage) error {
		lines = append(lines, string(text))
		return nil
	}, func(what string) { left = append(left, what) }, silent)
	require.NoError(t, err)
	return lines, left
}

func importOf(t *testing.T, r *workflowtest.Router, lines []string) (transfer.Imported, error) {
	t.Helper()
	return transfer.Import(t.Context(), r.Store, r.Catalog, strings.NewReader(strings.Join(lines, "\n")), r, silent)
}

func mustVerify(t *testing.T, r *workflowtest.Router) {
	t.Helper()
	_, err := inventory.Verify(t.Context(), &inventory.Options{Store: r.Store, Catalog: r.Catalog, Pace: pace, Say: silent, Damage: func(line string) { t.Error(line) }})
	require.NoError(t, err)
}

type object map[string]json.RawMessage

type line struct {
	WorkflowID string          `json:"workflowId"`
	InstanceID string          `json:"instanceId"`
	Record     object          `json:"record"`
	History    []object        `json:"history"`
	Rows       json.RawMessage `json:"rows"`
	Listed     json.RawMessage `json:"listed"`
}

func changed(t *testing.T, text string, change func(*line)) string {
	t.Helper()
	var l line
	require.NoError(t, json.Unmarshal([]byte(text), &l))
	change(&l)
	out, err := json.Marshal(l)
	require.NoError(t, err)
	return string(out)
}

// TestAnImportMakesTheSameInstances holds cmd/troupe/HOME.md, "Moving instances": the new home gives the same lines again, all rows
// fit each other there, what it has stays as it is, and the instances go on.
func TestAnImportMakesTheSameInstances(t *testing.T) {
	from := workflowtest.Start(t, workflowtest.Options{})
	from.Publish(request)
	john, mary := workflowtest.John, workflowtest.Mary
	var ids []string
	for n := range 4 {
		id := from.Make(john, "request", `{"n":1,"text":"<&> ü \u2028"}`)
		for range 40 { // NB: folded entries, and whole ones
			from.MustSend(john, "request", id, "note", `{"n":2,"long":"`+strings.Repeat("x", 600)+`"}`, "key")
		}
		from.MustSend(john, "request", id, "note", `{"n":3,"long":"`+strings.Repeat("x", 20<<10)+`"}`)
		if n > 0 {
			from.MustSend(john, "request", id, "submit", "")
		}
		if n > 1 {
			from.MustSend(mary, "request", id, "done", "")
		}
		ids = append(ids, id)
	}
	lines, left := export(t, from)
	require.Empty(t, left)
	require.Len(t, lines, 6)

	to := workflowtest.Start(t, workflowtest.Options{Shards: 3}) // NB: others than there
	_, err := importOf(t, to, lines)
	require.EqualError(t, err, "line 1: request version 1 is not published here: publish these definitions first, or put their files into workflows/ of a standalone server's home; nothing was imported")
	to.Publish(strings.Replace(request, "PT1H", "PT2H", 1))
	_, err = importOf(t, to, lines)
	require.ErrorContains(t, err, "request version 1 has other content here")
	to.Publish(request)

	// A file that is cut, or has a line that is not right, leaves whole instances; doing it again adds the others.
	report, err := importOf(t, to, lines[:3])
	require.ErrorContains(t, err, "line 4: the file ends before its last line")
	assert.EqualValues(t, 2, report.Imported)
	mustVerify(t, to)
	for _, broken := range []struct{ from, to, want string }{
		{`"sequence":`, `"sequence":1`, "entries"},
		{`"nodeId":"sent"`, `"nodeId":"draft"`, "stored record is damaged"},
		{`"endState":["sent"]`, `"endState":["end"]`, "at ["},
		{`"transitionEvent":"note"`, `"event":"note"`, "unknown field"},
		{`"workflowId":"request"`, `"workflowId":"other"`, "other version 1"},
		{`{"workflowId"`, `{"workflowId`, "invalid character"},
		{`"instanceId":"01`, `"instanceId":"x1`, "is not the id of an instance"},
		{`"rows":[{"key":"`, `"rows":[{"key":"eHh4`, "not one of the instance's own"},
		{`"version":1,`, `"version":7,`, "request version 7 is not published here"},
		{`"user":"john`, `"user":"` + strings.Repeat("x", 129), "cannot be the name of a user"},
		{`"transitionEvent":"note`, `"transitionEvent":"` + strings.Repeat("x", 513), "more than 512 bytes"},
		{`"ts":"2026`, `"ts":"0001`, "before 1970"},
		{`"dataDigest":{"sha256":"`, `"dataDigest":{"sha256":"00`, "must have sha256 and bytes"},
		{`"createdAt":"2026`, `"createdAt":"2025`, "createdAt and updatedAt of the record, 2025-"},
		{`{"workflowId"`, "\n" + `{"workflowId"`, "it is empty"},
		{`"text":"`, `"text":"` + strings.Repeat("x", 1<<20), "may have 1048576"},
		{`{"workflowId"`, `{"workflowId":"other","workflowId"`, `the member "workflowId" is there twice`},
		{`"createdAt"`, `"CreatedAt":"2026-01-01T00:00:00Z","createdAt"`, `record: the member "createdAt" is there twice`},
		{`"user":"john`, `"user":"eve","user":"john`, `the member "user" is there twice`},
		{`"rows":[{"key"`, `"rows":[{"value":"","value":"","key"`, `the member "value" is there twice`},
		{`,"bytes":`, `,"bytes":1,"bytes":`, "must have sha256 and bytes"},
		{`"data":null,"dataDigest"`, `"data":{},"dataDigest"`, "of data that is not there"},
		{`"data":{"n":2`, `"data":{"x":"` + strings.Repeat("x", 16<<10) + `","n":2`, "and may have 16384"},
		{`"transitionEvent":"note"`, `"transitionEvent":"zzz"`, `request version 1 has no event "zzz"`},
	} {
		text := strings.Join(lines[:5], "\n")
		i := strings.LastIndex(text, broken.from)
		require.Positive(t, i, broken.from)
		text = text[:i] + broken.to + text[i+len(broken.from):]
		_, err := importOf(t, to, append(strings.Split(text, "\n"), lines[5]))
		require.ErrorContains(t, err, broken.want)
		assert.Regexp(t, `^line [2-5]: `, err.Error())
		mustVerify(t, to)
	}
	for want, change := range map[string]func(*line){
		"it has no history": func(l *line) { l.History, l.Record["sequence"] = []object{}, json.RawMessage("0") },
		"is in the future": func(l *line) {
			l.Record["updatedAt"] = json.RawMessage(`"9999-01-01T00:00:00Z"`)
			l.History[len(l.History)-1]["ts"] = l.Record["updatedAt"]
		},
		"history entry 2: data must be an object": func(l *line) { l.History[1]["data"] = json.RawMessage("[1,2]") },
		"history entry 2: endState: [nowhere] is not where": func(l *line) {
			l.History[1]["endState"] = json.RawMessage(`["nowhere"]`)
			l.History[2]["startState"] = l.History[1]["endState"]
		},
		"endState: [draft draft] is not where": func(l *line) {
			l.History[1]["endState"] = json.RawMessage(`["draft","draft"]`)
			l.History[2]["startState"] = l.History[1]["endState"]
		},
		"states of the record must be [{": func(l *line) {
			twice := strings.Repeat(","+strings.Trim(string(l.Record["states"]), "[]"), 2)
			l.Record["states"] = json.RawMessage("[" + twice[1:] + "]")
		},
	} {
		_, err := importOf(t, to, []string{lines[0], changed(t, lines[4], change)})
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, to.Catalog.Readable(), "what was refused is no damage")

	// The row in its creator's list follows from the history, and goes with the instance.
	var id string
	another := changed(t, lines[4], func(l *line) {
		l.History[0]["user"] = json.RawMessage(`"eve"`)
		id = l.InstanceID
	})
	_, err = importOf(t, to, []string{lines[0], another, `{"instances":1}`})
	require.NoError(t, err)
	mustVerify(t, to)
	require.NoError(t, to.Delete(t.Context(), "boss", "request", id, false))
	mustVerify(t, to)

	_, err = importOf(t, to, lines)
	require.NoError(t, err)
	report, err = importOf(t, to, lines)
	require.NoError(t, err)
	assert.Equal(t, transfer.Imported{Skipped: 4}, report)
	mustVerify(t, to)
	again, _ := export(t, to)
	assert.ElementsMatch(t, lines, again) // the order is that of shards
	to.MustSend(john, "request", ids[0], "note", `{"n":9}`)
	to.MustSend(mary, "request", ids[1], "done", "")
	mustVerify(t, to)

	// What cannot be read is left out.
	to.Spoil("request", ids[0])
	some, left := export(t, to)
	assert.Len(t, some, 5)
	require.Len(t, left, 1)
	assert.Contains(t, left[0], ids[0])
	assert.Contains(t, some[4], `"instances":3`)
}

// TestAMigratedInstanceIsImported, though the entries before its migration, or before a reset behind it, have events and nodes that its
// definition does not have.
func TestAMigratedInstanceIsImported(t *testing.T) {
	const door = "id: door\nversion: %d\nstateMachines: {main: {initial: %s, states: {%[2]s: {on: {%s: {}}}}}}\n"
	first, second := fmt.Sprintf(door, 1, "shut", "knock"), fmt.Sprintf(door, 2, "closed", "ring")
	from, to := workflowtest.Start(t, workflowtest.Options{}), workflowtest.Start(t, workflowtest.Options{})
	from.Publish(first)
	id := from.Make(workflowtest.Boss, "door", "{}")
	from.MustSend(workflowtest.Boss, "door", id, "knock", "")
	from.Publish(second)
	plan, err := from.Parser.ParsePlan("plan", []byte("from: 1\nto: 2\nnodes: {main: {shut: closed}}\n"), func(n uint64) (*statemachine.Definition, error) {
		return from.Catalog.Find("door", n)
	})
	require.NoError(t, err)
	_, err = from.Migrate("door", id, &message.Migration{Plan: plan, Caller: &statemachine.Caller{ID: "boss"}})
	require.NoError(t, err)
	from.MustSend(workflowtest.Boss, "door", id, "ring", "")
	lines, _ := export(t, from)
	to.Publish(first)
	to.Publish(second)
	_, err = importOf(t, to, []string{lines[0], strings.Replace(lines[1], `"ring"`, `"knock"`, 1), lines[2]})
	require.ErrorContains(t, err, `history entry 4: door version 2 has no event "knock"`)
	_, err = importOf(t, to, lines)
	require.NoError(t, err)
	mustVerify(t, to)
	again, _ := export(t, to)
	assert.Equal(t, lines, again)

	for _, back := range []uint64{4, 2} { // to an entry of the same version, and of the other one
		of := message.Load{Caller: workflowtest.Boss, WorkflowID: "door", InstanceID: id}
		_, err := from.Reset(t.Context(), &message.Reset{Load: of, To: back, Reason: "it was open"})
		require.NoError(t, err)
		lines, _ := export(t, from)
		to := workflowtest.Start(t, workflowtest.Options{})
		to.Publish(first)
		to.Publish(second)
		if back == 4 {
			_, err = importOf(t, to, []string{lines[0], strings.Replace(lines[1], `"ring"`, `"knock"`, 1), lines[2]})
			require.ErrorContains(t, err, `history entry 4: door version 2 has no event "knock"`)
		}
		_, err = importOf(t, to, lines)
		require.NoError(t, err)
		mustVerify(t, to)
		again, _ := export(t, to)
		assert.Equal(t, lines, again)
	}
}

// creating is a router on which somebody creates an instance with a key while an import has it.
type creating struct {
	transfer.Running
	create func()
}

func (c creating) HoldKey(workflow, business string) (release func(), err error) {
	release, err = c.Running.HoldKey(workflow, business)
	go c.create()
	synctest.Wait() // the create has looked for the key, or waits for it
	return release, err
}

func TestAnImportAndACreateDoNotShareAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := workflowtest.Options{Workflow: workflow.Options{Clock: time.Now}}
		from, to := workflowtest.Start(t, o), workflowtest.Start(t, o)
		from.Publish(parcel)
		to.Publish(parcel)
		id := from.Make(workflowtest.Boss, "parcel", `{"n":"7"}`)
		lines, _ := export(t, from)
		created := make(chan error, 1)
		_, err := transfer.Import(t.Context(), to.Store, to.Catalog, strings.NewReader(strings.Join(lines, "\n")), creating{to.Router, func() {
			_, err := to.Create(t.Context(), &message.Create{Caller: workflowtest.Boss, WorkflowID: "parcel", Public: workflowtest.Value(`{"n":"7"}`)})
			created <- err
		}}, silent)
		require.NoError(t, err)
		require.ErrorIs(t, <-created, failure.ErrKeyTaken)
		all := to.Instances("parcel")
		assert.True(t, len(all) == 1 && all[0].Name == id, "got %+v", all)
		from.End()
		to.End()
	})
}

const parcel = "id: parcel\nkey: '${svcPublic.n}'\nstateMachines: {main: {initial: open, states: {open: {on: {add: {}, end: over}}, over: {type: final}}}}\n"

// TestAnImportEndsAtTheLineThatItNames: a line that is refused, for what the store has, too, leaves all lines before it and none behind it.
func TestAnImportEndsAtTheLineThatItNames(t *testing.T) {
	const all, taken = 40, 13
	from, to := workflowtest.Start(t, workflowtest.Options{}), workflowtest.Start(t, workflowtest.Options{})
	from.Publish(parcel)
	to.Publish(parcel)
	for n := range all {
		from.Make(workflowtest.Boss, "parcel", fmt.Sprintf(`{"n":"%d"}`, n))
	}
	lines, _ := export(t, from)
	var l struct {
		Record struct {
			Key    string          `json:"key"`
			Public json.RawMessage `json:"svcPublic"`
		} `json:"record"`
	}
	require.NoError(t, json.Unmarshal([]byte(lines[taken]), &l))
	id := to.Make(workflowtest.Boss, "parcel", string(l.Record.Public))
	for _, already := range []int64{0, taken - 1} {
		report, err := importOf(t, to, lines)
		require.ErrorContains(t, err, fmt.Sprintf("line %d: instance parcel/", taken+1))
		require.ErrorContains(t, err, fmt.Sprintf("instance %s has its key %q here", id, l.Record.Key))
		assert.Equal(t, transfer.Imported{Imported: taken - 1 - already, Skipped: already}, report)
		assert.Len(t, to.Instances("parcel"), taken)
	}
	mustVerify(t, to)
}

// TestKeysNeedAsManyShards: a key decides the shard of its instance.
func TestKeysNeedAsManyShards(t *testing.T) {
	from, to := workflowtest.Start(t, workflowtest.Options{Shards: 4}), workflowtest.Start(t, workflowtest.Options{Shards: 5})
	same := workflowtest.Start(t, workflowtest.Options{Shards: 4})
	var ids []string
	for _, r := range []*workflowtest.Router{from, to, same} {
		r.Publish(parcel)
	}
	for n := range 9 {
		ids = append(ids, from.Make(workflowtest.Boss, "parcel", fmt.Sprintf(`{"n":"%d"}`, n)))
	}
	lines, _ := export(t, from)
	report, err := importOf(t, to, lines)
	require.EqualError(t, err, "line 1: it has instances with keys from a store with 4 shards, and this one has 5: import it into a new home, made with --shards 4; nothing was imported")
	assert.Zero(t, report)
	assert.Empty(t, to.Instances("parcel"))
	report, err = importOf(t, same, lines)
	require.NoError(t, err)
	assert.Equal(t, transfer.Imported{Imported: 9}, report)
	mustVerify(t, same)

	// One that has ended holds its key no more.
	for _, id := range ids {
		from.MustSend(workflowtest.Boss, "parcel", id, "end", "")
	}
	lines, _ = export(t, from)
	assert.NotContains(t, lines[0], "businessKeys")
	report, err = importOf(t, to, lines)
	require.NoError(t, err)
	assert.Equal(t, transfer.Imported{Imported: 9}, report)
	mustVerify(t, to)
}
