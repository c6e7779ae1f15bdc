package workflow_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/rs/zerolog"

	"troupe/actors/changefeed"
	"troupe/actors/identity"
	"troupe/actors/migration"
	"troupe/actors/watch"
	"troupe/persistence/key"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// ear is a watch and what it has heard, of which told events were shown.
type ear struct {
	stop context.CancelFunc
	told int

	mu    sync.Mutex
	heard []watch.Event // guarded by mu
	err   error         // guarded by mu; with which it has ended
	beats bool
}

func (e *ear) take(event watch.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if event.Kind != watch.Heartbeat || e.beats {
		event.Data = slices.Clone(event.Data)
		e.heard = append(e.heard, event)
	}
	return nil
}

// shown is all that was heard, and the error with which the watch has ended.
func (e *ear) shown() ([]watch.Event, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard, e.err
}

// stepOfReaders are the steps of those who follow what happens.
func (s *scenario) stepOfReaders(a args, who *identity.Principal) (string, error) {
	switch a.words[0] {
	case "listen": // USER EAR WORKFLOW [of=NAME] [from=PLACE] [beats=1] [FILTER], in which @NAME is an id
		e := &ear{beats: a.more["beats"] != ""}
		req := &watch.Request{Caller: who, WorkflowID: a.at(3), Filter: named.ReplaceAllStringFunc(a.data, func(name string) string { return s.id(name[1:]) })}
		if of := a.more["of"]; of != "" {
			req.InstanceID = s.id(of)
		}
		if who != nil {
			req.Reauthorize = func() (*identity.Principal, error) { return s.principal(who.ID) }
		}
		if from := a.more["from"]; from != "" {
			req.LastEventID = s.place(from)
		}
		var ctx context.Context
		ctx, e.stop = context.WithCancel(s.t.Context())
		go func() {
			err := s.Watches.Watch(ctx, req, e.take)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.err = err
		}()
		synctest.Wait()
		if _, err := e.shown(); err != nil {
			e.stop()
			return "", err
		}
		s.ears[a.at(2)] = e
	case "hears": // EAR …: what it has heard, and the place behind that gets its name
		synctest.Wait()
		var out strings.Builder
		for _, name := range a.words[1:] {
			fmt.Fprintf(&out, "%s:", name)
			events, err := s.ears[name].shown()
			for _, event := range events[s.ears[name].told:] {
				out.WriteString(" " + heardText(event))
				if event.ID != "" {
					s.places[name] = event.ID
				}
			}
			if s.ears[name].told = len(events); err != nil {
				out.WriteString(" " + s.reasonOf(err))
			}
			out.WriteString("\n")
		}
		return out.String(), nil
	case "leave": // EAR …
		for _, name := range a.words[1:] {
			s.ears[name].stop()
			synctest.Wait()
			delete(s.ears, name)
		}
	case "changes": // USER PLACE [since=PLACE] [limit=N] [workflow=…] [wait=D] [all=1]: sorted, each instance in its order; what comes behind is PLACE
		limit, _ := strconv.Atoi(cmp.Or(a.more["limit"], "1000"))
		wait, _ := time.ParseDuration(a.more["wait"])
		since := a.more["since"]
		s.mu.Lock() // two readers may have begun
		since = cmp.Or(s.places[since], since)
		s.mu.Unlock()
		req := &changefeed.Request{Caller: who, WorkflowID: a.more["workflow"], Since: since, Limit: limit, Wait: wait}
		of := map[string]string{}
		for more := true; more; {
			page, err := s.Changes.Changes(s.t.Context(), req)
			if err != nil {
				return "", err
			}
			more = a.more["all"] != "" && len(page.Changes) > 0
			req.Since = page.Next
			s.mu.Lock()
			s.places[a.at(2)] = page.Next
			s.mu.Unlock()
			for _, e := range page.Changes {
				name, _ := e.Text.Lookup("transitionEvent")
				at := e.Workflow + " " + s.named(e.Name) + ":"
				of[at] += strings.TrimRight(fmt.Sprintf(" %d %s", e.Sequence, name.Text()), " ")
			}
		}
		out := ""
		for _, at := range slices.Sorted(maps.Keys(of)) {
			out += at + of[at] + "\n"
		}
		return cmp.Or(out, "none\n"), nil
	case "trim": // ROWS: of each shard, and 1 in 64 more, for a week
		rows, _ := strconv.Atoi(a.at(1))
		changefeed.New(changefeed.Options{Store: s.Store, Catalog: s.Catalog, Clock: s.clock, Log: zerolog.Nop(), RowsMax: rows, KeptFor: 7 * day}).Trim()
	case "times": // N STEP[; STEP …]: so many times, with 0, 1, … in place of each #
		n, _ := strconv.Atoi(a.at(1))
		steps := a.behind(2)
		for k := range n {
			for step := range strings.SplitSeq(strings.ReplaceAll(steps, "#", strconv.Itoa(k)), "; ") {
				if _, err := s.step(step); err != nil {
					return "", err
				}
			}
		}
	case "stop-watching":
		s.StopWatching()
	case "lose": // NAME [N]: its record, or its entry N
		id := s.ID(s.id(a.at(1)))
		sh := s.Store.ShardOf(id)
		lost := key.Record(nil, sh, s.of[s.id(a.at(1))], id)
		if n, err := strconv.ParseUint(a.at(2), 10, 64); err == nil {
			lost = key.Entry(nil, sh, id, n)
		}
		s.Overwrite(sh, lost, nil)
	case "try": // STEP, whatever comes of it
		_, _ = s.step(a.behind(1))
	case "readable": // all definitions
		return "", s.Catalog.Readable()
	case "spoil": // NAME
		id := s.ID(s.id(a.at(1)))
		record, err := s.Store.Load(key.Record(nil, s.Store.ShardOf(id), s.of[s.id(a.at(1))], id))
		s.Must(err)
		s.spoiled = record
		s.Spoil(s.of[s.id(a.at(1))], s.id(a.at(1)))
	default:
		return s.stepOfStore(a)
	}
	return "", nil
}

// place is what a name stands for, or the name; with a text before or behind it, or without its last four letters, it is none.
func (s *scenario) place(from string) string {
	before, name, ok := strings.Cut(from, "+")
	if !ok {
		before, name = "", from
	}
	name, behind, _ := strings.Cut(name, "~")
	of, isCut := strings.CutSuffix(name, "/")
	at := before + cmp.Or(s.places[of], name) + behind
	if isCut {
		at = at[:len(at)-4]
	}
	return at
}

var named = regexp.MustCompile(`@[a-zA-Z]+`)

func heardText(e watch.Event) string {
	switch e.Kind {
	case watch.Opened:
		return "open"
	case watch.Lost:
		if len(e.ID) == 1 { // of one instance: behind which entry it goes on
			return "lost/" + e.ID
		}
		return "lost"
	case watch.Heartbeat:
		if e.ID != "" {
			return "beat/place"
		}
		return "beat"
	}
	of := data.Value(e.Data)
	id, _ := of.Lookup("instanceId")
	sequence, _ := of.Lookup("sequence")
	entry, _ := of.Lookup("entry")
	name, _ := entry.Lookup("transitionEvent")
	return strings.TrimRight(fmt.Sprintf("%s.%s.%s", id.Text(), sequence, name.Text()), ".")
}

func (s *scenario) migrate(cmd *datadriven.TestData) string {
	service := migration.New(migration.Options{
		Instances: s.Router.Router, Queries: s.Queries, Parser: s.Parser, Newest: s.Catalog.Newest, Pin: s.Catalog.PinVersion, MayAssign: s.Catalog.MayAssign, Log: zerolog.New(&s.Log),
	})
	req := migration.Request{
		Caller: s.users[identity.UserID(cmd.CmdArgs[0].Key)], WorkflowID: cmd.CmdArgs[1].Key, File: "plan.yaml", Plan: []byte(cmd.Input + "\n"), Limit: 10, DryRun: cmd.HasArg("dry"),
	}
	cmd.MaybeScanArgs(s.t, "limit", &req.Limit)
	cmd.MaybeScanArgs(s.t, "filter", &req.Filter)
	cmd.MaybeScanArgs(s.t, "cursor", &req.Cursor)
	matched, migrated, pages, refused := 0, 0, 0, ""
	for {
		a, err := service.Migrate(s.t.Context(), &req)
		if err != nil {
			text := s.reasonOf(err) + "\n"
			if faults := (document.Faults{}); errors.As(err, &faults) {
				text += faults.Error() + "\n"
			}
			return text
		}
		matched, migrated, pages = matched+a.Matched, migrated+a.Migrated, pages+1
		for _, r := range a.Refused {
			refused += r.InstanceID + ": " + r.Reason + "\n"
		}
		if req.Cursor = a.Next; req.Cursor == "" {
			return fmt.Sprintf("matched %d, migrated %d, on %d pages\n%s", matched, migrated, pages, refused)
		}
	}
}
