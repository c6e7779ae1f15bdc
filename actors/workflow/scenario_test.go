package workflow_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"troupe/actors/bulk"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/hold"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/quota"
	"troupe/actors/retention"
	"troupe/actors/schedule"
	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// TestScenario plays the scripts in testdata/scenario in virtual time, which begins at midnight of 2000-01-01:
//
//	start [tree=N] [creates=R] [events=R] [entries=N]   a service with limits, and the definitions of the input, with --- between them;
//	                                                    again: those of the last start. It is midnight
//	publish [by=USER]                                   all definitions that there are now; those of a user come beside the others
//	user NAME [role …] [+privilege …]                   who somebody is from now on; gone: nobody any more
//	migrate USER WORKFLOW [dry] [limit=N] [filter='…']  the plan of the input, page by page
//	do                                                  the steps of the input, one a line
//
// The words of a step stand in the switch of the method that has it: step (instances, children, time, deliveries, incidents; in this file),
// stepOfPeople (tasks, forms, comments; scenario_people_test.go), stepOfReaders (watches, the feed of changes; scenario_follow_test.go), and
// stepOfStore (rows, indexes, a disk that hangs; scenario_store_test.go).
//
// A step answers nothing when nothing is wrong and nothing was asked. An answer stands behind its step, as "told" has it. Ids are shown
// as the names that the script gave: NAME-2-1 is a part of instance NAME.
// A definition @NAME is the one in testdata/definition. A line of one that begins with m#9: stands nine times, with 0 to 8 in place of
// each #. <x*300> is a text of 300 letters.
func TestScenario(t *testing.T) {
	datadriven.Walk(t, "testdata/scenario", func(t *testing.T, path string) {
		// NB: in the bubble the runner would complain of each ten seconds of virtual time.
		var commands []datadriven.TestData
		datadriven.RunTest(t, path, func(_ *testing.T, cmd *datadriven.TestData) string {
			commands = append(commands, *cmd)
			return cmd.Expected
		})
		var answers []string
		synctest.Test(t, func(t *testing.T) {
			s := &scenario{t: t, users: map[identity.UserID]*identity.Principal{}}
			for _, cmd := range commands {
				answers = append(answers, s.run(t, &cmd))
			}
			s.end()
		})
		datadriven.RunTest(t, path, func(*testing.T, *datadriven.TestData) string {
			answer := answers[0]
			answers = answers[1:]
			return answer
		})
	})
}

const day = 24 * time.Hour

type scenario struct {
	*harness
	t                *testing.T
	users            map[identity.UserID]*identity.Principal
	texts            []string          // with which it was started
	names            []string          // of instances and incidents, each behind its id
	of               map[string]string // workflows of instances, by id
	begun            time.Time
	full             map[string]string  // ids of incidents, by name
	failures, length int                // how many incidents have a name, and entries there were at the last step grew
	ears             map[string]*ear    // watches, by name
	places           map[string]string  // cursors and places of streams, by name
	feed             func() *task.Event // of a watch of tasks, which unwatch ends
	unwatch          func() error
	look, set        atomic.Int64 // how long a look at the clock takes, and by how much it is set
	besides          []*beside    // what was begun
	spoiled          []byte       // the record that was spoiled last
	commits          uint64       // at the last step commits

	mu    sync.Mutex
	sent  []string                 // guarded by mu; what left since the step that showed it
	noted []string                 // guarded by mu; who has done what since the step that showed it
	hosts map[string]outbox.Answer // guarded by mu; how they answer, by queue and, before that, by queue and body
	holds map[string]chan struct{} // guarded by mu; of the queues that are held
}

func (s *scenario) end() {
	if s.harness != nil {
		for _, e := range s.ears {
			e.stop()
		}
		if s.unwatch != nil {
			_ = s.unwatch()
			s.unwatch = nil
		}
		s.harness.End()
	}
}

// user is for the service, beside which the script changes who somebody is.
func (s *scenario) user(id identity.UserID) *identity.Principal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users[id]
}

func (s *scenario) run(t *testing.T, cmd *datadriven.TestData) string {
	texts := strings.Split(expand(cmd.Input), "\n---\n")
	for n, text := range texts {
		texts[n] = definition(text)
	}
	if cmd.HasArg("again") {
		texts = s.texts
	}
	switch cmd.Cmd {
	case "start":
		s.end()
		clocktest.Advance(time.Until(time.Now().Add(day - 1).Truncate(day)))
		var limits quota.Limits
		tree := 0
		cmd.MaybeScanArgs(t, "tree", &tree)
		cmd.MaybeScanArgs(t, "entries", &limits.HistoryEntries)
		for arg, to := range map[string]*float64{"creates": &limits.CreatesPerSecond, "events": &limits.EventsPerSecond} {
			if rate := ""; cmd.MaybeScanArgs(t, arg, &rate) {
				*to, _ = strconv.ParseFloat(rate, 64)
			}
		}
		s.failures, s.length, s.full, s.ears, s.places = 0, 0, map[string]string{}, map[string]*ear{}, map[string]string{"0": "0"}
		s.names, s.of, s.begun, s.sent, s.hosts, s.besides = nil, map[string]string{}, time.Now(), nil, map[string]outbox.Answer{}, nil
		s.holds = map[string]chan struct{}{}
		s.look.Store(0)
		s.set.Store(0)
		s.harness = &harness{workflowtest.Start(t, workflowtest.Options{Disk: storetest.NewDisk(), Workflow: workflow.Options{
			Clock: s.clock, Sender: s, TreeInstancesMax: tree, Quotas: limits, Principal: s.user, Audit: s.audit,
		}}), t}
		if s.texts = texts; texts[0] == "" {
			return "ok\n"
		}
		fallthrough
	case "publish":
		if cmd.HasArg("by") {
			for _, of := range s.Sources(texts...) {
				of.File = "body.yaml"
				s.Must(workflowtest.Second(s.Catalog.PublishDefinition(of, s.users[identity.UserID(cmd.CmdArgs[0].Vals[0])])))
			}
		} else {
			s.Publish(texts...)
		}
	case "warn": // of what these would delete at once
		warnings, err := retention.Warn(s.Store, s.Catalog.Retentions(), s.Sources(texts...), s.clock())
		s.Must(err)
		return cmp.Or(warnings.Error(), "nothing") + "\n"
	case "user":
		who := &identity.Principal{ID: identity.UserID(cmd.CmdArgs[0].Key)}
		for _, a := range cmd.CmdArgs[1:] {
			if privilege, ok := strings.CutPrefix(a.Key, "+"); ok {
				who.Privileges = append(who.Privileges, privilege)
			} else {
				who.Roles = append(who.Roles, a.Key)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users[who.ID] = who; slices.Equal(who.Roles, []string{"gone"}) {
			delete(s.users, who.ID)
		}
	case "migrate":
		return s.named(s.migrate(cmd))
	case "do":
		var out strings.Builder
		for line := range strings.Lines(expand(cmd.Input)) {
			line = strings.TrimSpace(line)
			text, err := s.step(line)
			text = told(short(line), s.named(short(text)))
			if err != nil {
				text += s.named(short(line) + ": " + s.reasonOf(err) + "\n")
			}
			out.WriteString(text)
		}
		return cmp.Or(out.String(), "ok\n")
	default:
		t.Fatalf("unknown command %q", cmd.Cmd)
	}
	return "ok\n"
}

// told is an answer behind its step, or below it when it is longer than a line. What has ended and what begins with a name of its step
// stands as it is.
func told(step, text string) string {
	words := strings.Fields(step)
	name, _, _ := strings.Cut(text, ":")
	switch {
	case text == "" || words[0] == "ended" || slices.Contains(words, name):
		return text
	case strings.Count(text, "\n") > 1:
		return step + ":\n  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
	}
	return step + ": " + text
}

// reasonOf is what a caller is told.
func (s *scenario) reasonOf(err error) string {
	f := failure.Of(err)
	text := f.Kind.Error()
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	if f.Reference != "" {
		text += ", see " + s.failure(f.Reference)
	}
	if f.Wait > 0 {
		text += ", after " + f.Wait.String()
	}
	return text
}

// args are the words of a step. Options have the form name=value, and what begins with a brace, a bracket or a quote is data to the end.
type args struct {
	line  string
	words []string
	data  string
	more  map[string]string
}

func argsOf(line string) (a args) {
	a.line, a.more = line, map[string]string{}
	for line != "" {
		if strings.ContainsRune(`{["`, rune(line[0])) {
			a.data = line
			break
		}
		var word string
		word, line, _ = strings.Cut(line, " ")
		if name, v, ok := strings.Cut(word, "="); ok {
			a.more[name] = v
		} else {
			a.words = append(a.words, word)
		}
	}
	return a
}

// within tells whether the options least and most have n between them.
func (a args) within(n int) bool {
	least, _ := strconv.Atoi(a.more["least"])
	most, err := strconv.Atoi(a.more["most"])
	return err == nil && n >= least && n <= most
}

// behind is the line without its first words.
func (a args) behind(words int) string {
	line := a.line
	for range words {
		_, line, _ = strings.Cut(line, " ")
	}
	return line
}

func (a args) at(n int) string {
	if n < len(a.words) {
		return a.words[n]
	}
	return ""
}

// id is what has a name, or a part of it; what has none stands for itself.
func (s *scenario) id(name string) string {
	if id, ok := s.full[name]; ok {
		return id
	}
	of, part, _ := strings.Cut(name, "-")
	for n := 1; n < len(s.names); n += 2 {
		if s.names[n] == of {
			return strings.TrimSuffix(s.names[n-1]+"-"+part, "-")
		}
	}
	return name
}

func (s *scenario) name(id, name string) {
	if !slices.Contains(s.names, id) {
		s.names = append(s.names, id, name)
	}
}

func (s *scenario) load(who *identity.Principal, name string) message.Load {
	id := s.id(name)
	return message.Load{Caller: who, WorkflowID: s.of[id], InstanceID: id}
}

func (s *scenario) step(line string) (string, error) {
	s.t.Helper()
	ctx, a := s.t.Context(), argsOf(line)
	who := s.users[identity.UserID(a.at(1))]
	switch a.words[0] {
	case "create": // USER WORKFLOW [NAME] [form|checklist] [key=K] [private=DATA] [reply=1] [DATA]
		req := &message.Create{Caller: who, WorkflowID: a.at(2), Public: value(a.data), Private: value(a.more["private"]), Retry: event(who, "", "", "", a.data, a.more["key"]).Retry}
		if kind := a.at(4); kind != "" {
			req.Form = formOf(who, a.at(2), map[string]form.Kind{"form": form.KindForm, "checklist": form.KindChecklist}[kind]).Form
			req.NoQuota = true
		}
		req.WithHistory = a.more["reply"] != ""
		r, err := s.Create(ctx, req)
		if err != nil {
			return "", err
		}
		again := slices.Contains(s.names, r.InstanceID)
		s.name(r.InstanceID, cmp.Or(a.at(3), "x"))
		s.of[r.InstanceID] = a.at(2)
		switch {
		case req.WithHistory:
			return string(r.AppendRecord(nil)) + "\n", nil
		case again:
			return r.InstanceID + " again\n", nil
		}
		return "", nil
	case "send": // USER NAME EVENT [key=K] [if=N,…] [reply=1] [DATA]
		of := s.load(who, a.at(2))
		e := event(who, of.WorkflowID, of.InstanceID, a.at(3), a.data, a.more["key"])
		for _, at := range strings.FieldsFunc(a.more["if"], func(r rune) bool { return r == ',' }) {
			n, _ := strconv.ParseUint(at, 10, 64)
			e.IfMatch = append(e.IfMatch, n)
		}
		r, err := s.Router.Router.Send(ctx, e)
		if err != nil || a.more["reply"] == "" {
			return "", err
		}
		return string(r.AppendRecord(nil)) + "\n", nil
	case "look": // USER NAME [workflow=…] [reply=1]
		of := s.load(who, a.at(2))
		of.WorkflowID = cmp.Or(a.more["workflow"], of.WorkflowID)
		of.WithHistory = a.more["reply"] != ""
		r, err := s.Load(ctx, &of)
		switch {
		case err != nil:
			return "", err
		case of.WithHistory:
			return string(r.AppendRecord(nil)) + "\n", nil
		}
		return fmt.Sprintf("%s: entry %d, %s\n", r.InstanceID, r.Sequence, r.Public), nil
	case "grew": // NAME least=N most=N: how many entries have come since the last step of this name
		r := s.MustLook(s.users["boss"], s.of[s.id(a.at(1))], s.id(a.at(1)))
		n := int(r.Sequence) - s.length
		s.length = int(r.Sequence)
		if !a.within(n) {
			return fmt.Sprintf("by %d\n", n), nil
		}
	case "show": // NAME …, from the store
		var out strings.Builder
		for _, name := range a.words[1:] {
			out.WriteString(s.show(s.id(name)))
		}
		return out.String(), nil
	case "advance":
		d, err := time.ParseDuration(a.at(1))
		clocktest.Advance(d)
		return "", err
	case "restart":
		s.Restart()
	case "restored": // what serves next has the store of a backup; resume outbox|schedules
		w := s.Store.NewBatch(key.Meta)
		if err := errors.Join(hold.Restored{Moment: time.Now()}.Put(w), s.Store.Commit(w)); err != nil {
			return "", err
		}
		s.Restart()
		return fmt.Sprintln(s.Held()), nil
	case "resume":
		return "", s.Resume(hold.What(a.at(1)))
	case "away": // for so long nobody serves
		d, err := time.ParseDuration(a.at(1))
		s.harness.End()
		clocktest.Advance(d)
		s.Begin()
		return "", err
	case "crash": // N …: behind so many syncs of the log, one crash after the other
		for _, w := range a.words[1:] {
			n, _ := strconv.Atoi(w)
			s.crashAt(n)
		}
	case "sleep":
		s.sleepAll()
	case "crashes": // N D: one every D, each behind up to three syncs of the log
		n, _ := strconv.Atoi(a.at(1))
		d, err := time.ParseDuration(a.at(2))
		for k := range n {
			clocktest.Advance(time.Until(time.Now().Add(d).Truncate(d)))
			s.crashAt(k % 4)
		}
		return "", err
	case "metrics":
		m := s.Metrics()
		return fmt.Sprintf("over quota %d, incidents %d\n", m.OverQuota, m.Incidents), nil
	case "awake":
		return fmt.Sprintf("%d awake\n", s.Metrics().Awake), nil
	case "delete": // USER NAME, a form
		of := s.load(who, a.at(2))
		return "", s.DeleteForm(who, of.WorkflowID, of.InstanceID)
	case "erase": // USER NAME [tree]: an instance
		return "", s.Router.Router.Delete(ctx, a.at(1), s.of[s.id(a.at(2))], s.id(a.at(2)), a.at(3) == "tree")
	case "many": // USER WORKFLOW N DATA: so many instances without names
		n, _ := strconv.Atoi(a.at(3))
		for range n {
			if _, err := s.Create(ctx, &message.Create{Caller: who, WorkflowID: a.at(2), Public: value(a.data)}); err != nil {
				return "", err
			}
		}
	case "bulk": // USER NAME WORKFLOW [event=NAME] [reset=N] [delete=1] [dry=1] FILTER: a job
		j := &bulk.Job{WorkflowID: a.at(3), Filter: string(a.data), Event: a.more["event"], Delete: a.more["delete"] != ""}
		if to, err := strconv.ParseUint(a.more["reset"], 10, 64); err == nil {
			j.Reset = &bulk.Reset{To: to, Reason: a.at(2)}
		}
		if err := s.Bulk.Create(ctx, who, j, a.more["dry"] != ""); err != nil {
			return "", err
		}
		if j.ID != "" {
			s.places[a.at(2)] = j.ID
		}
		return fmt.Sprintf("%d\n", *j.Total), nil
	case "change": // USER NAME pause|resume|cancel, a job
		return "", s.Bulk.Change(ctx, a.at(1), s.places[a.at(2)], bulk.Action(a.at(3)))
	case "job": // NAME
		j, err := s.Bulk.Find(ctx, s.places[a.at(1)])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s, %d done, %d failed of %d %v\n", j.Status, j.Done, j.Failed, *j.Total, j.Failures), nil
	case "row": // NAME: what is stored of a job
		row, err := s.Store.Load(key.Setting(nil, "bulk-"+s.places[a.at(1)]))
		var members map[string]any
		err = cmp.Or(err, json.Unmarshal(row, &members))
		return fmt.Sprint(slices.Sorted(maps.Keys(members)), " ", members["status"], "\n"), err
	case "noted": // who has deleted what
		s.mu.Lock()
		defer s.mu.Unlock()
		out := strings.Join(s.noted, "\n") + "\n"
		s.noted = nil
		for name, id := range s.places {
			out = strings.ReplaceAll(out, id, name)
		}
		return out, nil
	case "child": // NAME CHILD [STATUS]: the last one gets a name
		children := slices.DeleteFunc(s.pending(s.of[s.id(a.at(1))], s.id(a.at(1))).Children, func(c message.Child) bool {
			return a.at(3) != "" && c.Status.String() != a.at(3)
		})
		if len(children) == 0 {
			return "none\n", nil
		}
		c := children[len(children)-1]
		s.name(c.InstanceID, a.at(2))
		s.of[c.InstanceID] = c.WorkflowID
		return fmt.Sprintf("%s: %s %s\n", c.InstanceID, c.WorkflowID, c.Status), nil
	case "pending": // NAME
		return s.waits(s.pending(s.of[s.id(a.at(1))], s.id(a.at(1)))), nil
	case "reset": // USER NAME TO
		to, err := strconv.ParseUint(a.at(3), 10, 64)
		if err == nil {
			of := s.load(who, a.at(2))
			_, err = s.Reset(s.t.Context(), &message.Reset{Load: of, To: to, Reason: "again"})
		}
		return "", err
	case "stop": // USER NAME, a tree
		of := s.load(who, a.at(2))
		return "", s.StopTree(context.Background(), of.WorkflowID, of.InstanceID, a.at(1))
	case "count": // WORKFLOW …: how many there are, and were made
		var out []string
		for _, w := range a.words[1:] {
			out = append(out, fmt.Sprintf("%s %d made %d", w, s.count(w), s.made(w)))
		}
		return strings.Join(out, ", ") + "\n", nil
	case "runs": // WORKFLOW …: how many have not ended
		var out []string
		for _, w := range a.words[1:] {
			n := 0
			for _, i := range s.Instances(w) {
				if p := s.pending(w, i.Name); !p.IsEnded && !p.IsDone {
					n++
				}
			}
			out = append(out, fmt.Sprintf("%s %d", w, n))
		}
		return strings.Join(out, ", ") + "\n", nil
	case "publics": // WORKFLOW [entries=1]: the data of its instances, with the length of their histories, and how many have it
		of := map[string]int{}
		for _, i := range s.Instances(a.at(1)) {
			text := string(i.Record.Public)
			if a.more["entries"] != "" {
				text += fmt.Sprintf(" %d entries", i.Record.Sequence)
			}
			of[text]++
		}
		var out []string
		for text, n := range of {
			out = append(out, fmt.Sprintf("%s %d\n", text, n))
		}
		slices.Sort(out)
		return strings.Join(out, ""), nil
	case "rows": // TABLE …
		var out []string
		of := map[string]int{}
		s.EachRow(func(k key.Parts, _, _ []byte) { of[k.Table]++ })
		for _, table := range a.words[1:] {
			out = append(out, fmt.Sprintf("%s %d", table, of[table]))
		}
		return strings.Join(out, ", ") + "\n", nil
	case "log": // TEXT: how many lines have it
		return fmt.Sprintf("%d\n", s.Log.Count(parts.ReplaceAllStringFunc(strings.TrimPrefix(line, "log "), s.id))), nil
	case "schedules":
		return s.schedules()
	case "schedule": // WORKFLOW NAME pause|resume|run
		return "", s.ChangeSchedule(s.t.Context(), a.at(1), a.at(2), schedule.Action(a.at(3)))
	case "hosts": // QUEUE[:BODY] STATUS|hang|held|up [final] ["error"]; held ones answer at up
		s.mu.Lock()
		defer s.mu.Unlock()
		if held := s.holds[a.at(1)]; held != nil {
			close(held)
			delete(s.holds, a.at(1))
		}
		switch a.at(2) {
		case "up":
			delete(s.hosts, a.at(1))
			return "", nil
		case "held":
			s.holds[a.at(1)] = make(chan struct{})
		}
		status, _ := strconv.Atoi(a.at(2))
		answer := outbox.Answer{Status: status, Final: a.at(3) == "final"}
		if a.data != "" {
			answer.Err = errors.New(strings.Trim(a.data, `"`))
		}
		s.hosts[a.at(1)] = answer
	case "sent": // what left since the last time, by queue
		s.mu.Lock()
		defer s.mu.Unlock()
		all := s.sent
		slices.SortStableFunc(all, func(a, b string) int {
			x, _, _ := strings.Cut(a, " ")
			y, _, _ := strings.Cut(b, " ")
			return strings.Compare(x, y)
		})
		s.sent = nil
		return cmp.Or(strings.Join(all, ", "), "nothing") + "\n", nil
	case "deliveries": // [pending|dead] [as=USER]
		var out strings.Builder
		for _, d := range s.deliveries(s.users[identity.UserID(cmp.Or(a.more["as"], "boss"))], outbox.State(a.at(1))) {
			fmt.Fprintln(&out, deliveryText(d))
		}
		return cmp.Or(out.String(), "none\n"), nil
	case "delivery": // ID retry|drop
		return "", s.ChangeDelivery(ctx, s.id(a.at(1)), outbox.Action(a.at(2)))
	case "incidents": // [USER [short]]
		return s.failed(who, a.at(2) != "")
	case "failures": // INCIDENT least=N most=N: how often it came
		for _, i := range s.incidents() {
			if i.ID == s.id(a.at(1)) && !a.within(int(i.Row.Count)) {
				return fmt.Sprintf("%d times\n", i.Row.Count), nil
			}
		}
	case "incident": // USER ID retry|drop
		return "", s.ChangeIncident(ctx, who, s.id(a.at(2)), a.at(3) == "drop")
	default:
		return s.stepOfPeople(a, who)
	}
	return "", nil
}
