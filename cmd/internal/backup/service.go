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
	"troupe/persistence"
)

// Service backs up the home of a server in intervals (the settings backup.*).
type Service struct {
	config *config.Config
	cancel context.CancelFunc
	done   sync.WaitGroup
	fault  atomic.Pointer[string] // why the last run failed; nil: it did not
}

// Start begins with the first backup at once. Without the setting backup.to, it is nil.
func Start(c *config.Config, store *persistence.Store, log zerolog.Logger) (*Service, error) {
	if c.Backup.To == "" {
		return nil, nil
	}
	if !store.Standalone() {
		return nil, fmt.Errorf("the setting backup.to: %w", errCluster)
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
	run.Checkpoint = func(context.Context) (string, func(), error) {
		dir, err := store.Checkpoint()
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
			begun := time.Now()
			report, err := run.To(ctx, t, c.Backup.Keep)
			if ctx.Err() != nil {
				return
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
