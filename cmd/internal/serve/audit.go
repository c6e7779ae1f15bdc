package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"troupe/actors/audit"
	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/statemachine"
)

func (s *service) startAudit() {
	o := audit.Options{Store: s.store, Log: s.log}
	if s.node != nil {
		o.Current = s.current
		o.Lead = func(ctx context.Context, e audit.Entry) error {
			_, err := cluster.Ask(ctx, s.node, pathAudit, s.takeAudit, e)
			return err
		}
		cluster.Handle(s.node, pathAudit, s.takeAudit)
	}
	s.audit = audit.Start(o)
	s.started.push(s.audit)
}

func (s *service) takeAudit(ctx context.Context, _ peer.NodeID, e audit.Entry) (struct{}, error) {
	return struct{}{}, s.audit.Here(ctx, e)
}

// recordTaken records that text files of the home are in use, at a start and when they have changed.
func (s *service) recordTaken(action audit.Action) {
	digest := s.reloads.definitions.inUse
	if action == audit.RightsChange {
		digest = s.reloads.access.inUse
	}
	if err := s.audit.Record(context.Background(), statemachine.System, action, fmt.Sprintf("%x", digest[:8])); err != nil {
		s.log.Error().Err(err).Msg("files of the home are in use, and the audit log does not say so yet")
	}
}

// recordedTools are those of the store's tools that the audit log tells of.
var recordedTools = map[string]audit.Action{"export": audit.StoreExport, "import": audit.StoreImport, "compact": audit.StoreCompact}

// recorded has the audit log tell who has used the store's tools: the operator, before anything is done, since an export
// has begun with its first line.
func (s *service) recorded(tools map[string]admin.Tool) map[string]admin.Tool {
	for name, action := range recordedTools {
		tool := tools[name]
		tools[name] = func(ctx context.Context, in io.Reader, line func(any) error, say func(string)) error {
			if err := s.tell(ctx, action); err != nil {
				return err
			}
			return tool(ctx, in, line, say)
		}
	}
	return tools
}

// checkpoint makes the folder from which a backup is copied, and has the audit log tell of it.
func (s *service) checkpoint(ctx context.Context) (string, error) {
	dir, err := s.copyStore(ctx)
	if err != nil {
		return "", err
	}
	if err := s.tell(ctx, audit.StoreBackup); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// tell has the audit log tell of what the operator begins. A full disk has no room for the row, and ends with the very
// commands that are recorded: they go on, and their rows follow.
func (s *service) tell(ctx context.Context, action audit.Action) error {
	err := s.audit.Announce(ctx, statemachine.System, action, "")
	if err != nil && errors.Is(s.store.Accepting(), persistence.ErrDiskFull) {
		s.audit.Later(statemachine.System, action, "")
		return nil
	}
	return err
}
