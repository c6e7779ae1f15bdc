package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/cmd/internal/config"
)

// Service backs up the home of a server in intervals (the settings backup.*).
type Service struct {
	config *config.Config
	cancel context.CancelFunc
	done   sync.WaitGroup
	fault  atomic.Pointer[string] // why the last run failed; nil: it did not
}

// turnEvery is the time between two looks whether a backup is this node's.
const turnEvery = time.Second

// Start makes the first backup at once. copied writes a copy of the store and returns its folder; isOurs says whether this
// node is the one that makes the backups now. Without the setting backup.to, it is nil.
func Start(c *config.Config, copied func(context.Context) (dir string, err error), isOurs func() bool, log zerolog.Logger) (*Service, error) {
	if c.Backup.To == "" {
		return nil, nil
	}
	t, closeTarget, err := openTarget(c, c.BackupTo())
	if err != nil {
		return nil, fmt.Errorf("the setting backup.to: %w", err)
	}
	run, err := newRun(c, false)
	if err != nil {
		return nil, err
	}
	run.CountMax = c.Backup.Every / countShare
	run.Checkpoint = func(ctx context.Context) (string, func(), error) {
		dir, err := copied(ctx)
		return dir, func() {
			if err := os.RemoveAll(dir); err != nil {
				log.Warn().Err(err).Str("folder", dir).Msg("a checkpoint could not be removed; the next start does it")
			}
		}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{config: c, cancel: cancel}
	s.done.Go(func() {
		defer closeTarget()
		for more := true; more; {
			if !isOurs() {
				s.fault.Store(nil)
				more = sleep(ctx, turnEvery)
				continue
			}
			begun := time.Now()
			ours, end := whileOurs(ctx, isOurs)
			report, err := run.To(ours, t, c.Backup.Keep)
			lost := ours.Err() != nil
			end()
			if ctx.Err() != nil {
				return
			}
			if err != nil && lost { // another node makes the next one
				continue
			}
			if err != nil {
				reason := err.Error()
				s.fault.Store(&reason)
				log.Error().Err(err).Msg("backup failed, it is tried again")
			} else {
				s.fault.Store(nil)
			}
			if report != nil {
				log.Info().Str("to", t.String()).Time("moment", report.Index.Moment).Int64("bytes", report.Index.Bytes()).Int64("new_bytes", report.Copied).
					Int("removed", report.Removed).Strs("left", report.Left).Dur("tookMs", time.Since(begun)).Msg("backup written")
			}
			more = sleep(ctx, c.Backup.Every-time.Since(begun))
		}
	})
	return s, nil
}

// whileOurs ends a backup that another node makes now: two at a time would remove what each other has written.
func whileOurs(ctx context.Context, isOurs func() bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for isOurs() && sleep(ctx, turnEvery) {
		}
		cancel()
	}()
	return ctx, cancel
}

// Stop ends a backup that is being written; nothing of it stays.
func (s *Service) Stop(context.Context) error {
	s.cancel()
	s.done.Wait()
	return nil
}

// Ready says why the last backup failed.
func (s *Service) Ready() error {
	if reason := s.fault.Load(); reason != nil {
		return errors.New(*reason)
	}
	return nil
}
