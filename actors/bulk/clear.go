package bulk

import (
	"context"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// clear takes out of the rows of jobs that have ended what may quote data, on the node that leads Meta. It is for all
// shards, of which one at a time does it: known are all jobs of a moment ago.
func (s *Service) clear(ctx context.Context, known []Job) error {
	if s.o.Store.Epoch(key.Meta) == 0 || !slices.ContainsFunc(known, hasData) || !s.isTimeToClear() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clearMax)
	defer cancel()
	epoch, err := s.lead(ctx)
	if err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil { // NB: a job that is removed meanwhile would come back
		return err
	}
	defer s.end()
	w := s.o.Store.NewBatchIn(key.Meta, epoch)
	if err := s.clearIn(ctx, w); err != nil || w.Len() == 0 {
		w.Discard()
		return err
	}
	return failure.OfStore(s.o.Store.Commit(w))
}

func (s *Service) clearIn(ctx context.Context, w *persistence.Batch) error {
	jobs, err := s.load()
	for _, j := range jobs {
		if err != nil || !hasData(j) {
			continue
		}
		var state *State
		if state, err = s.state(ctx, j); err == nil && state.isOver() {
			j.Status, j.Filter, j.Data, j.Plan = state.Status, "", nil, nil
			w.Set(j.row(), write(j))
		}
	}
	return err
}

func hasData(j Job) bool { return j.Filter != "" || j.Data != nil || j.Plan != nil }

func (s *Service) isTimeToClear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.cleared) < clearEvery {
		return false
	}
	s.cleared = time.Now()
	return true
}
