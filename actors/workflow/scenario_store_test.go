package workflow_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"troupe/actors/outbox"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/task"
	"troupe/persistence/key"
	"troupe/statemachine/data"
)

// beside is a step that was begun and goes on beside the next ones.
type beside struct {
	line, text string
	err        error
	done       chan struct{}
}

// clock is the router's.
func (s *scenario) clock() time.Time {
	if d := time.Duration(s.look.Load()); d > 0 {
		<-time.After(d)
	}
	return time.Now().Add(time.Duration(s.set.Load()))
}

// audit is told who has deleted what.
func (s *scenario) audit(_ context.Context, actor, action, target string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted = append(s.noted, actor+" "+action+" "+target)
	return nil
}

// principal is who somebody is now.
func (s *scenario) principal(id identity.UserID) (*identity.Principal, error) {
	if who := s.user(id); who != nil {
		return who, nil
	}
	return nil, failure.ErrForbidden
}

// URL and Send implement outbox.Sender: the script says how the other side answers.
func (s *scenario) URL(outbox.Attempt) string { return "" }

func (s *scenario) Send(ctx context.Context, a outbox.Attempt) outbox.Answer {
	s.mu.Lock()
	s.sent = append(s.sent, fmt.Sprintf("%s %s%s", a.Queue, a.Body, strings.Join(a.To, " ")))
	answer, ok := s.hosts[fmt.Sprintf("%s:%s", a.Queue, a.Body)]
	if !ok {
		answer, ok = s.hosts[a.Queue]
	}
	s.mu.Unlock()
	if !ok {
		return outbox.Answer{Status: 200, Body: value(`{"ok":true}`)}
	}
	if held := s.held(a.Queue); held != nil {
		<-held
		return answer
	}
	if answer.Status == 0 && answer.Err == nil {
		<-ctx.Done()
	}
	return answer
}

// held is closed when a queue that is held answers; nil: it is not held.
func (s *scenario) held(queue string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[queue]
}

// stepOfStore are the steps of the store and its disk, and of what the router has in it.
func (s *scenario) stepOfStore(a args) (string, error) {
	switch a.words[0] {
	case "hang": // the disk does
		s.Disk.Hold()
	case "go-on": // the disk does
		s.Disk.Release()
		synctest.Wait()
	case "begin": // STEP
		b := &beside{line: a.behind(1), done: make(chan struct{})}
		s.besides = append(s.besides, b)
		go func() {
			defer close(b.done)
			b.text, b.err = s.step(b.line)
		}()
		synctest.Wait()
	case "ended": // what was begun and has ended; the others are named
		synctest.Wait()
		out := ""
		s.besides = slices.DeleteFunc(s.besides, func(b *beside) bool {
			select {
			case <-b.done:
				if out += short(b.line) + ": "; b.err != nil {
					b.text = s.reasonOf(b.err) + "\n"
				} else if b.text == "" {
					b.text = "done\n"
				}
				out += b.text
				return true
			default:
				out += short(b.line) + ": not yet\n"
				return false
			}
		})
		return out, nil
	case "looks": // D: how long a look at the clock takes
		d, err := time.ParseDuration(a.at(1))
		s.look.Store(int64(d))
		return "", err
	case "set": // D: how far the clock is from the one that goes on
		d, err := time.ParseDuration(a.at(1))
		s.set.Store(int64(d))
		return "", err
	case "clean": // what is left of old requests
		s.Clean()
	case "commits": // since the last time
		n := s.Store.Metrics().Committed - s.commits
		s.commits += n
		return fmt.Sprintf("%d\n", n), nil
	case "named": // NAME: how many rows have its id in their key, by table, and how many others in their value
		id := s.ID(s.id(a.at(1)))
		keys, values := map[string]int{}, map[string]int{}
		s.EachRow(func(k key.Parts, text, value []byte) {
			switch {
			case bytes.Contains(text, id[:]), bytes.Contains(text, []byte(s.id(a.at(1)))):
				keys[k.Table]++
			case bytes.Contains(value, id[:]), bytes.Contains(value, []byte(s.id(a.at(1)))):
				values[k.Table]++
			}
		})
		return "keys" + tally(keys) + "; values" + tally(values) + "\n", nil
	case "having": // TABLE TEXT: how many rows have it in their value
		n := 0
		s.EachRow(func(k key.Parts, _, value []byte) {
			if k.Table == a.at(1) && bytes.Contains(value, []byte(a.at(2))) {
				n++
			}
		})
		return fmt.Sprintf("%d\n", n), nil
	case "holding": // TEXT: how many rows have it, in their key or value, by table
		rows := map[string]int{}
		s.EachRow(func(k key.Parts, text, value []byte) {
			if bytes.Contains(text, []byte(a.at(1))) || bytes.Contains(value, []byte(a.at(1))) {
				rows[k.Table]++
			}
		})
		return cmp.Or(strings.TrimSpace(tally(rows)), "none") + "\n", nil
	case "moved": // PLACE PLACE: that are not the same
		return map[bool]string{true: "moved\n", false: "the same\n"}[s.places[a.at(1)] != s.places[a.at(2)]], nil
	case "first": // WORKFLOW NAME: the first instance gets a name
		of := s.Instances(a.at(1))[0].Name
		s.name(of, a.at(2))
		s.of[of] = a.at(1)
	case "lines": // how many rows there are of instances that are no forms
		return fmt.Sprintf("%d\n", len(s.lines())), nil
	case "writes": // USER EVENT NAME NAME [asleep]: whether the second one writes as much
		var sizes [2]uint64
		for n := range sizes {
			if a.at(5) != "" {
				s.sleepAll()
			}
			before := s.Store.Metrics().AppendedBytes
			if _, err := s.step(fmt.Sprintf("send %s %s %s", a.at(1), a.at(3+n), a.at(2))); err != nil {
				return "", err
			}
			sizes[n] = s.Store.Metrics().AppendedBytes - before
		}
		return map[bool]string{true: "as much\n", false: "another\n"}[sizes[0] == sizes[1]], nil
	case "remove": // NAME, whoever may
		return "", s.Router.Router.Delete(context.Background(), "", s.of[s.id(a.at(1))], s.id(a.at(1)), false)
	case "repair": // NAME, what was spoiled
		id := s.ID(s.id(a.at(1)))
		s.Overwrite(s.Store.ShardOf(id), key.Record(nil, s.Store.ShardOf(id), s.of[s.id(a.at(1))], id), s.spoiled)
	case "enter": // NAME PATH: into an index, as its builder does
		wait, err := s.EnterIndex(s.of[s.id(a.at(1))], s.ID(s.id(a.at(1))), s.Catalog.Indexes().Find(s.of[s.id(a.at(1))], a.at(2)))
		if err != nil {
			return "", err
		}
		return "", wait()
	case "indexes": // are built, and right
		synctest.Wait() // or the time that AwaitIndexes takes hangs on who is quicker
		s.AwaitIndexes()
		s.CheckIndexes()
	case "indexed": // NAME PATH VALUES, an array of the values that the instance has in an index; "" is the absent one
		got, want := s.keysOf(s.id(a.at(1)), a.at(2)), [][]byte{}
		for _, v := range data.Value(a.data).Elements() {
			if string(v) == `""` {
				v = nil
			}
			want = append(want, data.AppendOrdered(nil, v))
		}
		if slices.SortFunc(want, bytes.Compare); !slices.EqualFunc(got, want, bytes.Equal) {
			return fmt.Sprintf("%q instead of %q\n", got, want), nil
		}
	case "running": // WORKFLOW [least=N most=N]: how many run, and how many invocations their data says were refused
		ids, refused := s.running(a.at(1))
		if a.within(refused) {
			return fmt.Sprintf("%d run, refused least to most\n", len(ids)), nil
		}
		return fmt.Sprintf("%d run, %d refused\n", len(ids), refused), nil
	case "last": // WORKFLOW: the last entries of its instances
		of := map[string]int{}
		for _, i := range s.Instances(a.at(1)) {
			var e struct{ TransitionEvent, User string }
			for _, text := range i.Document.History().Elements() {
				s.Must(json.Unmarshal(text, &e))
			}
			of[strings.TrimSpace(e.TransitionEvent+" "+e.User)]++
		}
		return strings.TrimPrefix(tally(of), " ") + "\n", nil
	case "versions": // WORKFLOW: how many instances have which
		of := map[string]int{}
		for _, i := range s.Instances(a.at(1)) {
			of[strconv.FormatUint(i.Record.Version, 10)]++
		}
		return strings.TrimPrefix(tally(of), " ") + "\n", nil
	case "bounds": // shown=N hidden=N rows=N cost=N of a page of tasks
		var n [4]int
		for k, name := range []string{"shown", "hidden", "rows", "cost"} {
			n[k], _ = strconv.Atoi(a.more[name])
		}
		s.BoundTasks(task.Bounds{Shown: n[0], Hidden: n[1], Rows: n[2], Cost: uint64(n[3])})
	default:
		s.t.Fatalf("unknown step %q", a.words)
	}
	return "", nil
}

// tally has names and how often each came.
func tally(of map[string]int) (text string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		text += fmt.Sprintf(" %s %d", name, of[name])
	}
	return text
}

// running returns the instances of a workflow that run, and how many invocations their data says were refused.
func (s *scenario) running(workflowID string) (ids []string, refused int) {
	for _, i := range s.Instances(workflowID) {
		if s.pending(workflowID, i.Name).IsEnded {
			continue
		}
		ids = append(ids, i.Name)
		var public struct {
			Refused int
			Why     string
		}
		s.Must(json.Unmarshal(i.Record.Public, &public))
		refused += public.Refused
		assert.True(s.t, public.Refused == 0 || strings.Contains(public.Why, "treeInstancesMax"), "an invocation was refused with %q", public.Why)
	}
	return ids, refused
}
