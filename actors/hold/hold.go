// Package hold is what a restored store does not do until a person says that it may: send webhooks and mails, run
// schedules, and give jobs to programs. A copy of a store that is still in use elsewhere must not do them a second time. What is held back stands in
// a row of the store, so that it holds over restarts; who restores a store writes it (Restored.Put), before any server.
// Timers, and messages between instances, change only the store itself and go on.
package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// What can be held back.
type What string

const (
	Outbox    What = "outbox"    // webhooks, mails, exports, and backups of the setting
	Schedules What = "schedules" // runs of schedules
	Jobs      What = "jobs"      // leases of jobs
)

const setting = "restored"

// Restored says of a store where it comes from and what is held back; the stored form is its JSON.
type Restored struct {
	Moment time.Time `json:"moment"` // that of the backup
	At     time.Time `json:"at"`     // when it was restored
	Held   []What    `json:"held"`
}

// Put holds back everything.
func (r Restored) Put(w *persistence.Batch) error {
	r.Held = []What{Outbox, Schedules, Jobs}
	return r.put(w)
}

func (r *Restored) put(w *persistence.Batch) error {
	if len(r.Held) == 0 {
		w.Delete(key.Setting(nil, setting))
		return nil
	}
	text, err := json.Marshal(r)
	w.Set(key.Setting(nil, setting), text)
	return err
}

// Hold is what the store of a router holds back. Its methods may be called by any number of goroutines.
type Hold struct {
	store *persistence.Store
	log   zerolog.Logger
	now   atomic.Pointer[Restored] // read only
	place sync.Mutex               // held by who changes it
}

// Open reads what is held back, and logs it. A node of a cluster holds nothing back: no backup is restored into one.
func Open(store *persistence.Store, log zerolog.Logger) (*Hold, error) {
	h := &Hold{store: store, log: log}
	h.now.Store(&Restored{})
	if !store.Standalone() {
		return h, nil
	}
	text, err := store.Load(key.Setting(nil, setting))
	if errors.Is(err, persistence.ErrNotFound) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Restored{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("what the restored store holds back: %w", err)
	}
	h.now.Store(r)
	log.Warn().Time("moment", r.Moment).Time("restored", r.At).Msg(h.Ready().Error())
	return h, nil
}

// Holds says whether something is held back.
func (h *Hold) Holds(what What) bool { return h.now.Load().holds(what) }

func (r *Restored) holds(what What) bool { return slices.Contains(r.Held, what) }

// Ready is nil, or an error that says what is held back and how it is resumed.
func (h *Hold) Ready() error { return h.refusal(Outbox, Schedules, Jobs) }

// Refusal is Ready for one thing.
func (h *Hold) Refusal(what What) error { return h.refusal(what) }

func (h *Hold) refusal(of ...What) error {
	r, parts := h.now.Load(), []string{}
	for _, what := range of {
		if r.holds(what) {
			parts = append(parts, pausedText[what])
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("the store was restored from a backup of %s: %s", r.Moment.UTC().Format(time.RFC3339), strings.Join(parts, ", "))
}

var pausedText = map[What]string{
	Outbox:    "webhooks, mails and backups of the setting are paused until `troupe outbox resume`",
	Schedules: "schedules are paused until `troupe schedule resume --all`",
	Jobs:      "jobs are paused until `troupe job resume`",
}

// Resume returns when it is durable that something is held back no more. It can be called again.
func (h *Hold) Resume(what What) error {
	h.place.Lock()
	defer h.place.Unlock()
	before := h.now.Load()
	if !before.holds(what) {
		return nil
	}
	next := *before
	next.Held = slices.DeleteFunc(slices.Clone(before.Held), func(held What) bool { return held == what })
	w := h.store.NewBatch(key.Meta)
	if err := next.put(w); err != nil {
		return err
	}
	if err := h.store.Commit(w); err != nil {
		return failure.OfStore(err)
	}
	h.now.Store(&next)
	h.log.Info().Str("what", string(what)).Msg("resumed after a restore")
	return nil
}
