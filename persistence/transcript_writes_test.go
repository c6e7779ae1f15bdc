package persistence

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// doWrites are the words about writes and their answers.
func (s *story) doWrites(word string, args []string, rest string) string {
	name, value, _ := strings.Cut(rest, "=")
	switch word {
	case "append":
		s.begin(name, value)
		s.store.Append(s.begun, s.told.waiter())
	case "many": // settings of so many bytes, in such intervals
		s.many(args)
	case "all":
		return s.all()
	case "barrier":
		if s.group {
			s.store.BarrierIn(key.Meta, s.store.Epoch(key.Meta), s.told.waiter())
		} else {
			s.store.Barrier(s.told.waiter())
		}
	case "vote", "entry": // of a replica
		how, w := map[string]replica.Write{"vote": replica.Vital, "entry": replica.Synced}[word], s.told.waiter()
		go func() {
			w.Committed(localRows{s.store, key.Meta}.Write(how, func(b replica.Batch) { b.Set(key.Setting(nil, name), []byte(value)) }))
		}()
	case "answers": // of each
		return s.told.each()
	case "told": // how many have an answer
		return s.told.count()
	case "unknown": // to any
		return s.told.unknown()
	case "begin":
		s.begin(name, value)
		return fmt.Sprint(s.begun.Len(), " write")
	case "set":
		s.begun.Set(key.Setting(nil, name), []byte(value))
	case "unset":
		s.begun.Delete(key.Setting(nil, rest))
	case "unset.range":
		s.begun.DeleteRange(key.Setting(nil, args[0]), key.Setting(nil, args[1]))
	case "empty":
		s.begun = s.store.NewBatch(key.Meta)
	case "finish":
		return said(s.store.Commit(s.begun))
	case "discard":
		s.begun.Discard()
	case "delete":
		w := s.store.NewBatch(key.Meta)
		w.Delete(key.Setting(nil, rest))
		return said(s.store.Commit(w))
	case "heal.after":
		d, err := time.ParseDuration(rest)
		must(s.t, err)
		time.AfterFunc(d, s.heal)
	case "die":
		go s.store.commits.Die("in a test")
	case "died":
		select {
		case reason := <-s.died:
			return reason
		case <-time.After(time.Minute):
			return "it lives"
		}
	default:
		return s.doFiles(word, args, rest)
	}
	return ""
}

func (s *story) begin(name, value string) {
	s.begun = s.store.NewBatch(key.Meta)
	s.begun.Set(key.Setting(nil, name), []byte(value))
}

// manyValue is the value of the n-th of many settings.
func manyValue(n, size int) string { return fmt.Sprint(n) + strings.Repeat("x", size) }

func (s *story) many(args []string) {
	count, err := strconv.Atoi(args[0])
	must(s.t, err)
	size, every := 0, time.Duration(0)
	if len(args) > 1 {
		size, err = strconv.Atoi(args[1])
		must(s.t, err)
	}
	if len(args) > 2 {
		every, err = time.ParseDuration(args[2])
		must(s.t, err)
	}
	for n := range count {
		s.begin(fmt.Sprintf("many-%05d", n), manyValue(n, size))
		s.store.Append(s.begun, s.told.waiter())
		if every > 0 {
			clocktest.Advance(every)
		}
	}
}

// all counts the settings of many, and says which is not what it should be.
func (s *story) all() string {
	n := 0
	err := s.store.Scan(key.SettingsPrefix(nil), func(rowKey, value []byte) error {
		k, _ := key.Parse(rowKey)
		if number, padding := fmt.Sprint(n), strings.TrimRight(string(value), "x"); k.Name != fmt.Sprintf("many-%05d", n) || padding != number {
			return fmt.Errorf("%s=%s stands in the place of %d", k.Name, padding, n)
		}
		n++
		return nil
	})
	if err != nil {
		return said(err)
	}
	return fmt.Sprint("0 to ", n-1)
}

// told has the answers of waiters, in the order of their appends.
type told struct {
	mu    sync.Mutex
	all   []*answer
	calls int  // of all waiters
	mixed bool // a waiter was told before one that came before it, or twice
}

// answer is a waiter with its answer.
type answer struct {
	of  *told
	n   int
	err error
	has bool
}

func (t *told) waiter() *answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, &answer{of: t, n: len(t.all)})
	return t.all[len(t.all)-1]
}

func (a *answer) Committed(err error) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.of.mixed = a.of.mixed || a.has || a.of.calls != a.n
	a.of.calls++
	a.err, a.has = err, true
}

func (a *answer) String() string {
	if !a.has {
		return "none yet"
	}
	return said(a.err)
}

func (t *told) each() string {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, a := range t.all {
		all = append(all, a.String())
	}
	return strings.Join(all, "; ")
}

// count demands that all were told once and in their order, and only what a writer may be told.
func (t *told) count() string {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.all {
		if a.err != nil && !errors.Is(a.err, ErrOutcomeUnknown) && !errors.Is(a.err, ErrStalled) {
			return a.String()
		}
	}
	if t.mixed {
		return "not each once, and in order"
	}
	return fmt.Sprintf("%d of %d, each once and in order", t.calls, len(t.all))
}

func (t *told) unknown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprint(slices.ContainsFunc(t.all, func(a *answer) bool { return errors.Is(a.err, ErrOutcomeUnknown) }))
}
