// Package credential has the commands about who may do something: tokens, sessions and passwords, and the contexts
// that keep tokens. The first three ask the server that runs on a home, or open its store.
package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/persistence"
)

// adminClient administers tokens, sessions and passwords: through a running server, or in the store of the home.
type adminClient interface {
	Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (secret string, made identity.Credential, err error)
	Credentials(ctx context.Context, kind identity.Kind) ([]identity.Credential, error)
	Revoke(ctx context.Context, kind identity.Kind, id string) error
	SetPassword(ctx context.Context, user identity.UserID, password string) error
	Close() error
}

func openAdminClient(ctx context.Context, c *config.Config) (adminClient, error) {
	client, err := homedir.Dial(ctx, c.Home)
	if err == nil {
		return remoteClient{client}, nil
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return nil, err
	}
	if err := homedir.Demand(c.Home); err != nil {
		return nil, err
	}
	if c.IsNode() {
		return nil, c.ErrNeedsServer()
	}
	directory, err := home.LoadDirectory(os.DirFS(c.Home))
	if err != nil {
		return nil, err
	}
	log := c.Logger()
	store, err := c.OpenStore(log)
	if err != nil {
		return nil, err
	}
	service, err := c.StartIdentities(store, directory, log)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &localClient{service, store}, nil
}

type remoteClient struct{ *admin.Client }

func (remoteClient) Close() error { return nil }

type localClient struct {
	*identity.Service
	store *persistence.Store
}

func (d *localClient) Close() error {
	return errors.Join(d.Stop(context.Background()), d.store.Close())
}

func newKind(kind identity.Kind, short string) *cobra.Command {
	return cli.Group(kind.String(), short, fmt.Sprintf("  troupe %s create --user john.doe", kind),
		newCredentialCreate(kind), newCredentialList(kind), newCredentialRevoke(kind))
}

// What can be wrong with its flags is found before, in PreRunE.
func administering(cmd *cobra.Command, do func(ctx context.Context, a adminClient, args []string) error) *cobra.Command {
	c := config.New()
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.LoadQuiet(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.CommandTimeMax)
		defer cancel()
		a, err := openAdminClient(ctx, c)
		if errors.Is(err, persistence.ErrLocked) {
			return fmt.Errorf("%w, which does not answer at %s: the server is starting or stopping, so try again; or its socket was removed, and a restart makes it anew", err, homedir.AdminSocket)
		}
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, a, args), a.Close())
	}
	return cmd
}

func newCredentialCreate(kind identity.Kind) *cobra.Command {
	var user, expires string
	var wanted identity.CreateCredential
	example, otherwise := "30d", "never"
	if kind == identity.Session {
		example, otherwise = "12h", "session-max, which is also the most"
	}
	cmd := &cobra.Command{
		Use:   "create",
		Short: fmt.Sprintf("Print a new %s, alone, on standard output; it is never shown again", kind),
		Example: fmt.Sprintf("  troupe %s create --user john.doe\n", kind) +
			fmt.Sprintf("  troupe %s create --home /srv/troupe --user john.doe --expires %s --note laptop", kind, example),
		PreRunE: func(*cobra.Command, []string) (err error) {
			if user == "" {
				return cli.Usagef("--user is missing")
			}
			wanted.User = identity.UserID(user)
			if expires == "" {
				return nil
			}
			if wanted.Expires, err = cli.ParseDuration(expires); err == nil && wanted.Expires == 0 {
				err = errors.New("must be longer than zero")
			}
			if err != nil {
				return cli.Usagef("--expires %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "login name of the owner (required)")
	cmd.Flags().StringVar(&expires, "expires", "", "time to its end, such as "+example+"; default: "+otherwise)
	cmd.Flags().StringVar(&wanted.Note, "note", "", "what it is for")
	return administering(cmd, func(ctx context.Context, a adminClient, _ []string) error {
		secret, _, err := a.Create(ctx, kind, wanted)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
		}
		return err
	})
}

func newCredentialList(kind identity.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List every %s; the secrets are not kept and not shown", kind),
		Example: fmt.Sprintf("  troupe %s list --home ./troupe-home", kind),
	}
	return administering(cmd, func(ctx context.Context, a adminClient, _ []string) error {
		all, err := a.Credentials(ctx, kind)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "USER", "CREATED", "EXPIRES", "LAST USED", "REVOKED", "NOTE"}}
		for _, k := range all {
			rows = append(rows, []string{
				k.ID, string(k.User), shownTime(k.Created), shownTime(k.Expires), shownTime(k.LastUsed), shownTime(k.Revoked), k.Note,
			})
		}
		return cli.Table(cmd.OutOrStdout(), rows)
	})
}

func shownTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func newCredentialRevoke(kind identity.Kind) *cobra.Command {
	return administering(&cobra.Command{
		Use:     "revoke ID",
		Short:   fmt.Sprintf("Revoke a %s at once", kind),
		Example: fmt.Sprintf("  troupe %s revoke ID", kind),
	}, func(ctx context.Context, a adminClient, args []string) error { return a.Revoke(ctx, kind, args[0]) })
}

// Commands are those about who may do something: tokens, sessions, passwords, and the contexts that keep tokens.
func Commands() []*cobra.Command {
	return []*cobra.Command{newKind(identity.Token, "Create, list and revoke API tokens"), newKind(identity.Session, "Create, list and revoke sessions"), newPassword(), newContext()}
}
