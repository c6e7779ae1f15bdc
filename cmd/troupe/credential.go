package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/gateway/admin"
	"troupe/persistence"
)

// commandTimeMax bounds a command, however slow the server or the disk is.
const commandTimeMax = 30 * time.Second

// adminClient administers tokens, sessions and passwords: through a running server,
// or in the store that this process opens.
type adminClient interface {
	Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (secret string, err error)
	Credentials(ctx context.Context, kind identity.Kind) ([]identity.Credential, error)
	Revoke(ctx context.Context, kind identity.Kind, id string) error
	SetPassword(ctx context.Context, user identity.UserID, password string) error
	Close() error
}

// openAdminClient asks the running server; when there is none, it opens the store.
func openAdminClient(ctx context.Context, c *config) (adminClient, error) {
	client, err := admin.Dial(ctx, filepath.Join(c.home, adminSocket))
	if err == nil {
		return remoteClient{client}, nil
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return nil, err
	}
	if err := wantHome(c.home); err != nil {
		return nil, err
	}
	directory, err := home.LoadDirectory(c.home)
	if err != nil {
		return nil, err
	}
	log := c.logger()
	store, err := openStore(c, log)
	if err != nil {
		return nil, err
	}
	service, err := c.startIdentities(store, directory, log)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &localClient{service, store.Close}, nil
}

type remoteClient struct{ client *admin.Client }

func (d remoteClient) Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (string, error) {
	create := d.client.CreateToken
	if kind == identity.Session {
		create = d.client.CreateSession
	}
	secret, _, err := create(ctx, c)
	return secret, err
}

func (d remoteClient) Credentials(ctx context.Context, kind identity.Kind) ([]identity.Credential, error) {
	return d.client.Credentials(ctx, kind)
}

func (d remoteClient) Revoke(ctx context.Context, kind identity.Kind, id string) error {
	return d.client.Revoke(ctx, kind, id)
}

func (d remoteClient) SetPassword(ctx context.Context, user identity.UserID, password string) error {
	return d.client.SetPassword(ctx, user, password)
}

func (remoteClient) Close() error { return nil }

type localClient struct {
	service *identity.Service
	close   func() error
}

func (d *localClient) Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (string, error) {
	create := d.service.CreateToken
	if kind == identity.Session {
		create = d.service.CreateSession
	}
	secret, _, err := create(ctx, c)
	return secret, err
}

func (d *localClient) Credentials(_ context.Context, kind identity.Kind) ([]identity.Credential, error) {
	return d.service.Credentials(kind), nil
}

func (d *localClient) Revoke(ctx context.Context, kind identity.Kind, id string) error {
	return d.service.Revoke(ctx, kind, id)
}

func (d *localClient) SetPassword(ctx context.Context, user identity.UserID, password string) error {
	return d.service.SetPassword(ctx, user, password)
}

func (d *localClient) Close() error {
	return errors.Join(d.service.Stop(context.Background()), d.close())
}

func newToken() *cobra.Command {
	return group("token", "Create, list and revoke API tokens", "  troupe token create --user john.doe",
		newCredentialCreate(identity.Token), newCredentialList(identity.Token), newCredentialRevoke(identity.Token))
}

func newSession() *cobra.Command {
	return group("session", "Create, list and revoke sessions", "  troupe session create --user john.doe",
		newCredentialCreate(identity.Session), newCredentialList(identity.Session), newCredentialRevoke(identity.Session))
}

// withAdminClient runs do with the home's admin client.
func withAdminClient(cmd *cobra.Command, c *config, do func(ctx context.Context, a adminClient) error) error {
	if err := c.load(); err != nil {
		return err
	}
	c.logLevel = "warn" // this is a command, not the server
	ctx, cancel := context.WithTimeout(cmd.Context(), commandTimeMax)
	defer cancel()
	a, err := openAdminClient(ctx, c)
	if errors.Is(err, persistence.ErrLocked) {
		return fmt.Errorf("%w, which does not answer at %s: the server is starting or stopping, so try again; or its socket was removed, and a restart makes it anew", err, adminSocket)
	}
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, a), a.Close())
}

func newCredentialCreate(kind identity.Kind) *cobra.Command {
	c := newConfig()
	var user, expires, note string
	example, otherwise := "30d", "never"
	if kind == identity.Session {
		example, otherwise = "12h", "session-max, which is also the most"
	}
	cmd := &cobra.Command{
		Use:   "create",
		Short: fmt.Sprintf("Print a new %s, alone, on standard output; it is never shown again", kind),
		Example: fmt.Sprintf("  troupe %s create --user john.doe\n", kind) +
			fmt.Sprintf("  troupe %s create --home /srv/troupe --user john.doe --expires %s --note laptop", kind, example),
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if user == "" {
				return usageError{errors.New("--user is missing")}
			}
			var lasts time.Duration
			if expires != "" {
				var err error
				if lasts, err = parseDuration(expires); err == nil && lasts == 0 {
					err = errors.New("must be longer than zero")
				}
				if err != nil {
					return usageError{fmt.Errorf("--expires %w", err)}
				}
			}
			return withAdminClient(cmd, c, func(ctx context.Context, a adminClient) error {
				secret, err := a.Create(ctx, kind, identity.CreateCredential{User: identity.UserID(user), Expires: lasts, Note: note})
				if err == nil {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
				}
				return err
			})
		},
	}
	cmd.Flags().AddFlag(c.flags.Lookup("home"))
	cmd.Flags().StringVar(&user, "user", "", "login name of the owner (required)")
	cmd.Flags().StringVar(&expires, "expires", "", "time to its end, such as "+example+"; default: "+otherwise)
	cmd.Flags().StringVar(&note, "note", "", "what it is for")
	return cmd
}

func newCredentialList(kind identity.Kind) *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List every %s; the secrets are not kept and not shown", kind),
		Example: fmt.Sprintf("  troupe %s list --home ./troupe-home", kind),
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdminClient(cmd, c, func(ctx context.Context, a adminClient) error {
				all, err := a.Credentials(ctx, kind)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				_, _ = fmt.Fprintln(w, "ID\tUSER\tCREATED\tEXPIRES\tLAST USED\tREVOKED\tNOTE")
				for _, k := range all {
					_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.User, shownTime(k.Created),
						shownTime(k.Expires), shownTime(k.LastUsed), shownTime(k.Revoked), k.Note)
				}
				return w.Flush()
			})
		},
	}
	cmd.Flags().AddFlag(c.flags.Lookup("home"))
	return cmd
}

func shownTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func newCredentialRevoke(kind identity.Kind) *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   fmt.Sprintf("Revoke a %s at once", kind),
		Example: fmt.Sprintf("  troupe %s revoke ID", kind),
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdminClient(cmd, c, func(ctx context.Context, a adminClient) error { return a.Revoke(ctx, kind, args[0]) })
		},
	}
	cmd.Flags().AddFlag(c.flags.Lookup("home"))
	return cmd
}
