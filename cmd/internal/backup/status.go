package backup

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"troupe/gateway/api"
	"troupe/persistence/backup"
	"troupe/statemachine"
)

// Statuses says where the server backs up to and what is there; nothing if it makes no backups.
func (s *Service) Statuses(ctx context.Context) []api.Backup {
	if s == nil {
		return nil
	}
	o := &s.config.Backup
	status := api.Backup{To: s.config.BackupTo(), EverySeconds: o.Every.Seconds(), KeepSeconds: o.Keep.Seconds()}
	newest, err := openSource(ctx, s.config, status.To, time.Time{})
	if err == nil {
		moment, bytes := newest.Moment.UTC().Format(statemachine.TimeLayout), newest.Bytes()
		status.Moment, status.Bytes = &moment, &bytes
	}
	if fault := s.fault.Load(); fault != nil {
		status.Error = *fault
	} else if err != nil && !errors.Is(err, backup.ErrNoBackup) && !errors.Is(err, fs.ErrNotExist) {
		status.Error = err.Error()
	}
	return []api.Backup{status}
}
