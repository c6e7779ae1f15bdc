package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Authenticate is that of Service. Two more errors are failure.ErrUnavailable, when this node cannot know whether the
// credential works, and ErrBusy, when too many wait.
func (r *Replicated) Authenticate(kind Kind, credential string) (*Principal, error) {
	id, secret, ok := split(credential)
	if !ok {
		return nil, r.refuse()
	}
	if _, ended := r.ends.Load(id); ended && kind&Ending == 0 {
		return nil, r.refuse()
	}
	if t := r.present(); t != nil {
		if s := t.service.Load(); s != nil {
			if _, known := s.entries.Load(id); known {
				return s.Authenticate(kind, credential)
			}
			if err := r.awaitCurrent(); err != nil {
				return nil, err
			}
			if r.present() == t {
				return s.Authenticate(kind, credential)
			}
		}
	}
	if !r.options.Fresh() {
		return nil, errNotFresh
	}
	e, err := r.read(id)
	if err == nil && e == unknown {
		if err = r.awaitCurrent(); err == nil {
			e, err = r.read(id)
		}
	}
	if err != nil {
		return nil, err
	}
	now := r.options.Clock().UnixMilli()
	if at, used := r.uses.Load(id); used && e != unknown {
		e.lastUsed.Store(max(at, e.stored))
	}
	if !e.matches(secret) || e.kind&kind == 0 || !e.usable(now, r.idle) {
		return nil, r.refuse()
	}
	p := e.principal(r.Directory())
	if p == nil {
		return nil, r.refuse()
	}
	if now-e.lastUsed.Load() >= touchMilliseconds {
		r.noteUse(id, now)
	}
	return p, nil
}

func (r *Replicated) refuse() error {
	r.refused.Add(1)
	return failure.ErrUnauthorized
}

// read returns a credential as the store has it: unknown where there is none, or none that can be read.
func (r *Replicated) read(id string) (*entry, error) {
	for _, kind := range []Kind{Token, Session} {
		if id[:len(kind.prefix())] != kind.prefix() {
			continue
		}
		var k [64]byte
		row, err := r.options.Store.Load(key.Credential(k[:0], letter(kind), id))
		if errors.Is(err, persistence.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, failure.OfStore(err)
		}
		if e, err := parseCredential(kind, id, row, r.options.SessionMax); err == nil {
			return e, nil
		}
		break
	}
	return unknown, nil
}

// Use is the last use of a credential, or its end.
type Use struct {
	ID    string `json:"id"`
	At    int64  `json:"at"` // Unix milliseconds
	Ended bool   `json:"ended,omitempty"`
}

// Used takes what TellUses of another node was given.
func (r *Replicated) Used(uses []Use) {
	if s := r.service(); s != nil {
		s.used(uses)
	}
}

func (r *Replicated) service() *Service {
	if t := r.present(); t != nil {
		return t.service.Load()
	}
	return nil
}

// used notes uses on other nodes, and ends what ended there. A clock that is ahead keeps no session alive for longer.
func (s *Service) used(uses []Use) {
	now := s.options.Clock().UnixMilli()
	var ended []string
	for _, use := range uses {
		if use.Ended {
			ended = append(ended, use.ID)
		} else if e, known := s.entries.Load(use.ID); known {
			e.touch(min(use.At, now))
		}
	}
	if len(ended) > 0 {
		select {
		case s.changes <- change{end: ended}:
		case <-s.stopping:
		}
	}
}

// eachUnstored visits the last uses that were not appended. The writer is gone.
func (s *Service) eachUnstored(visit func(id string, at int64)) {
	s.entries.Range(func(id string, e *entry) bool {
		if at := e.lastUsed.Load(); at > e.stored {
			visit(id, at)
		}
		return true
	})
}

func (r *Replicated) noteUse(id string, at int64) {
	r.uses.Compute(id, func(last int64, known bool) (int64, xsync.ComputeOp) {
		if !known && r.uses.Size() >= r.options.CredentialsMax {
			return 0, xsync.CancelOp
		}
		return max(last, at), xsync.UpdateOp
	})
}

// noteEnd remembers an end until the store has it. It reports false when there is no room for more.
func (r *Replicated) noteEnd(id string) bool {
	if r.ends.Size() >= r.options.CredentialsMax {
		return false
	}
	r.ends.Store(id, struct{}{})
	return true
}

func (r *Replicated) unstored() (uses []Use) {
	r.ends.Range(func(id string, _ struct{}) bool {
		// NB: of a credential whose row is not here nobody has the secret.
		if e, err := r.read(id); err == nil && (e == unknown || e.revoked.Load() != 0) {
			r.ends.Delete(id)
		} else {
			uses = append(uses, Use{ID: id, Ended: true})
		}
		return true
	})
	r.uses.Range(func(id string, at int64) bool {
		e, err := r.read(id)
		// NB: what is less than a touch apart is not stored again.
		if err == nil && (e == unknown || at-e.stored < touchMilliseconds) {
			r.uses.Compute(id, func(last int64, _ bool) (int64, xsync.ComputeOp) {
				if last != at {
					return 0, xsync.CancelOp
				}
				return 0, xsync.DeleteOp
			})
			return true
		}
		uses = append(uses, Use{ID: id, At: at})
		return true
	})
	return uses
}

func (r *Replicated) tellUses() {
	flush := time.NewTicker(r.options.FlushEvery)
	defer flush.Stop()
	for over := false; !over; {
		select {
		case <-flush.C:
		case <-r.stopping.Done():
			over = true
		}
		uses := r.unstored()
		if s := r.service(); s != nil {
			s.used(uses)
			continue
		}
		if r.options.TellUses != nil && len(uses) > 0 {
			r.options.TellUses(uses)
		}
	}
}

const (
	// currentWaitMax is the default of ReplicatedOptions.CurrentMax.
	currentWaitMax    = 250 * time.Millisecond
	currentWaitersMax = 256 // currentWaitersMax bounds those who wait
)

// Those who wait share the calls of Current, so guessing costs the leader little.
func (r *Replicated) awaitCurrent() error {
	err := r.rounds.Await(context.Background())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wait.ErrWaiting):
		return errWaiting
	case errors.Is(err, wait.ErrNoAnswer):
		return errNoAnswer
	}
	return failure.Errorf(failure.ErrUnavailable, "an unknown credential may be new: %w", err)
}

const flowKeySetting = "flow-key"

// FlowKey returns 32 random bytes that all nodes of the cluster have, and nobody else. They stay the same for good. The
// error is failure.ErrUnavailable until the first leader has made them, or that of the store.
func (r *Replicated) FlowKey() ([]byte, error) {
	key, err := r.options.Store.Load(key.Setting(nil, flowKeySetting))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.Errorf(failure.ErrUnavailable, "the key of sign-ins is not made yet")
	}
	return key, failure.OfStore(err)
}

// makeFlowKey does not wait: what fails is tried again in the next epoch.
func (r *Replicated) makeFlowKey(epoch uint64) {
	store, row := r.options.Store, key.Setting(nil, flowKeySetting)
	if _, err := store.Load(row); !errors.Is(err, persistence.ErrNotFound) {
		return // NB: where the store cannot be read, there may be one
	}
	k := make([]byte, 32)
	_, _ = rand.Read(k) // crypto/rand never returns an error; it ends the program
	w := store.NewBatchIn(key.Meta, epoch)
	w.Set(row, k)
	store.Append(w, confirmation(func(err error) {
		if err != nil {
			r.options.Log.Warn().Err(err).Msg("the key of sign-ins through a provider was not made; the next leader tries again")
		}
	}))
}
