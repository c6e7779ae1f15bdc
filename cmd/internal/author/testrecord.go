package author

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/actors/simulation/script"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/client"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// recording prints a test that goes the way of a real instance.
func (t *testCommand) recording(cmd *cobra.Command) error {
	set, err := homedir.Load(t.dir)
	if err != nil {
		return asFaulty(cmd, t.dir, err)
	}
	service, err := t.at.Client(0)
	if err != nil {
		return err
	}
	defer service.Close()
	of, err := recorded(cmd.Context(), service, set, t.record)
	if err != nil {
		return connect.Explain(err)
	}
	of.WithPrivate = t.private
	text, err := script.Record(set.Known(), of)
	if err != nil {
		return fmt.Errorf("record %s: %w", t.record, err)
	}
	if t.to != "" {
		if err := os.MkdirAll(filepath.Dir(t.to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(t.to, text, 0o644)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// recorded reads an instance, which is named by its id alone or with its workflow in front.
func recorded(ctx context.Context, c *client.Client, set *home.Set, name string) (*script.Recorded, error) {
	workflow, id, hasWorkflow := strings.Cut(name, "/")
	workflows := []string{workflow}
	if !hasWorkflow {
		workflows, id = set.Known().Workflows(), name
	}
	var found *client.Instance
	var err error
	for _, workflow = range workflows {
		found, err = c.Instance(ctx, client.InstanceRequest{WorkflowID: workflow, InstanceID: id})
		refused := (*client.Error)(nil)
		if err == nil || !errors.As(err, &refused) || refused.Status != http.StatusNotFound && refused.Status != http.StatusForbidden {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	of := &script.Recorded{Workflow: workflow, Name: "as " + id, Public: data.Value(found.Public), Private: data.Value(found.Private)}
	for page, err := range c.HistoryPages(ctx, client.HistoryRequest{WorkflowID: workflow, InstanceID: id, Data: true}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			e := &page.Items[i]
			if len(e.DataDigest) > 0 {
				return nil, fmt.Errorf("record %s: the data of %s was too long to be kept in the history", name, e.TransitionEvent)
			}
			step := script.RecordedStep{User: e.User, Event: statemachine.EventName(e.TransitionEvent), End: nodeIDs(e.EndState), At: e.Time}
			if len(e.Data) > 0 && string(e.Data) != "null" {
				step.Data = data.Value(e.Data)
			}
			of.Entries = append(of.Entries, step)
		}
	}
	return of, nil
}
