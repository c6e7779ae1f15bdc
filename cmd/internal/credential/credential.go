// Package credential has the commands about who may do something: tokens, sessions and passwords, and the contexts
// that keep tokens. The first three ask the server that runs on a home, or open its store.
package credential

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"troupe/actors/audit"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/gateway/client"
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
	logger := c.Logger()
	store, err := c.OpenStore(logger)
	if err != nil {
		return nil, err
	}
	service, err := c.StartIdentities(store, directory, logger)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	log := audit.Start(audit.Options{Store: store, Log: logger})
	return &localClient{&audit.Identities{Identities: service, Log: log}, store}, nil
}

type remoteClient struct{ *admin.Client }

func (remoteClient) Close() error { return nil }

type localClient struct {
	*audit.Identities
	store *persistence.Store
}

func (d *localClient) Close() error {
	return errors.Join(d.Stop(context.Background()), d.Log.Stop(context.Background()), d.store.Close())
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
			return fmt.Errorf("%w, which does not answer at %s: the server is starting or stopping, so try again; or its socket was removed: restart the server", err, homedir.AdminSocket)
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
		example, otherwise = "12h", "session-max, which is also the maximum"
	}
	cmd := &cobra.Command{
		Use:   "create",
		Short: fmt.Sprintf("Create a %s and print it; it is never shown again", kind),
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
	cmd.Flags().StringVar(&expires, "expires", "", "lifetime, such as "+example+"; default: "+otherwise)
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
		Short:   fmt.Sprintf("List every %s, without its secret", kind),
		Example: fmt.Sprintf("  troupe %s list --home ./troupe-home\n  troupe %s list -o json", kind, kind),
	}
	out := cli.AddOutput(cmd, cli.AnyForm...)
	return administering(cmd, func(ctx context.Context, a adminClient, _ []string) error {
		all, err := a.Credentials(ctx, kind)
		if err != nil {
			return err
		}
		head := []string{"ID", "USER", "CREATED", "EXPIRES", "LAST USED", "REVOKED", "NOTE"}
		return cli.WriteList(cmd, out, kind.String()+"s", head, all, func(k *identity.Credential) []string {
			return []string{
				k.ID, string(k.User), shownTime(k.Created), shownTime(k.Expires), shownTime(k.LastUsed), shownTime(k.Revoked), k.Note,
			}
		})
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
		Short:   fmt.Sprintf("Revoke a %s", kind),
		Example: fmt.Sprintf("  troupe %s revoke ID", kind),
	}, func(ctx context.Context, a adminClient, args []string) error { return a.Revoke(ctx, kind, args[0]) })
}

// Commands are those about who may do something: tokens, sessions, passwords, and the contexts that keep tokens.
func Commands() []*cobra.Command {
	return []*cobra.Command{newKind(identity.Token, "Create, list and revoke API tokens"), newKind(identity.Session, "Create, list and revoke sessions"), newPassword(), newContext()}
}

func newContext() *cobra.Command {
	return cli.Group("context", "Manage connections to services (address and token)",
		"  troupe token create --user john.doe | troupe context set local --address http://127.0.0.1:8080 --token-stdin\n"+
			"  troupe context use local",
		newContextList(), newContextSet(), newContextUse(), newContextRemove())
}

func newContextList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List contexts, without their tokens", Example: "  troupe context list\n  troupe context list -o json"}
	out := cli.AddOutput(cmd, cli.AnyForm...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := connect.LoadContexts()
		if err != nil {
			return err
		}
		type shown struct {
			Name    string `json:"name"`
			Current bool   `json:"current"`
			connect.Profile
		}
		var all []shown
		for _, p := range c.All {
			if p.Token != "" {
				p.Token = "kept here"
			}
			all = append(all, shown{p.Name, p.Name == c.Current, p})
		}
		return cli.WriteList(cmd, out, "contexts", []string{"CURRENT", "NAME", "ADDRESS", "TOKEN"}, all, func(s *shown) []string {
			mark, token := "", cmp.Or(s.Token, "none")
			if s.Current {
				mark = "*"
			}
			switch {
			case s.TokenFile != "":
				token = "in " + s.TokenFile
			case s.Token == "" && s.Cert != "":
				token = "certificate " + s.Cert
			}
			return []string{mark, s.Name, s.Address, token}
		})
	}
	return cmd
}

func newContextSet() *cobra.Command {
	var address, tokenFile string
	var over connect.TLS
	var tokenStdin bool
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Create or change a context; the first one becomes the current one",
		Long:  `What no flag names stays as it is, but a new address removes the token, which was for the old one.`,
		Example: "  troupe token create --user john.doe | troupe context set local --address http://127.0.0.1:8080 --token-stdin\n" +
			"  troupe context set production --address https://example.org/platform --token-file ~/.troupe-token --ca company-ca.pem\n" +
			"  troupe context set nightly --address https://example.org/platform --cert nightly.crt --cert-key nightly.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !connect.ContextName.MatchString(args[0]) {
				return cli.Usagef("a name has 1 to 64 letters, digits, dots, dashes and underscores")
			}
			if tokenStdin && tokenFile != "" {
				return cli.Usagef("--token-file and --token-stdin cannot be combined")
			}
			return connect.ChangeContexts(func(all *connect.Contexts) error {
				p := all.Find(args[0])
				if p == nil {
					all.All = append(all.All, connect.Profile{Name: args[0]})
					p = &all.All[len(all.All)-1]
				}
				all.Current = cmp.Or(all.Current, p.Name)
				err := changeProfile(cmd, p, address, tokenFile, tokenStdin)
				if err == nil {
					err = p.Take(over)
				}
				if err != nil || all.Current == p.Name {
					return err
				}
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the current context is still %s; to select this one: troupe context use %s\n", all.Current, p.Name)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&address, "address", "", "URL of the service (required for a new context)")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the API token, read each time")
	over.AddFlags(cmd)
	cmd.Flags().BoolVar(&tokenStdin, "token-stdin", false, "read the API token from standard input and store it")
	return cmd
}

func changeProfile(cmd *cobra.Command, p *connect.Profile, address, tokenFile string, tokenStdin bool) error {
	if address != "" {
		if _, err := client.New(client.Options{Address: address}); err != nil {
			return cli.Usagef("--address: %w", err)
		}
		if (p.Token != "" || p.TokenFile != "") && !connect.SameAddress(address, p.Address) {
			p.Token, p.TokenFile = "", ""
			if !tokenStdin && tokenFile == "" {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the token of %s was for %s and was removed\n", p.Name, p.Address)
			}
		}
		p.Address = address
	}
	if p.Address == "" {
		return cli.Usagef("--address is missing")
	}
	switch {
	case tokenStdin:
		text, err := cli.ReadInput(cmd.InOrStdin())
		if err != nil {
			return fmt.Errorf("--token-stdin: %w", err)
		}
		token, err := connect.CheckedToken("--token-stdin", string(text))
		if err != nil {
			return err
		}
		p.Token, p.TokenFile = token, ""
	case tokenFile != "":
		if _, err := connect.ReadTokenFile("--token-file", tokenFile); err != nil {
			return err
		}
		whole, err := filepath.Abs(tokenFile)
		if err != nil {
			return err
		}
		p.Token, p.TokenFile = "", whole
	}
	return nil
}

func newContextUse() *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Select the current context",
		Example:           "  troupe context use local",
		ValidArgsFunction: connect.ContextArgument,
		RunE: func(_ *cobra.Command, args []string) error {
			return connect.ChangeContexts(func(all *connect.Contexts) error {
				all.Current = args[0]
				_, err := all.Named(args[0])
				return err
			})
		},
	}
}

func newContextRemove() *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove a context and its stored token, which stays valid",
		Example:           "  troupe context remove local",
		ValidArgsFunction: connect.ContextArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.ChangeContexts(func(all *connect.Contexts) error {
				if _, err := all.Named(args[0]); err != nil {
					return err
				}
				all.All = slices.DeleteFunc(all.All, func(p connect.Profile) bool { return p.Name == args[0] })
				if all.Current == args[0] {
					all.Current = ""
					_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "there is no current context now; select one with troupe context use NAME")
				}
				return nil
			})
		},
	}
}

// passwordLineMax bounds the line that holds a password.
const passwordLineMax = 8 << 10

func newPassword() *cobra.Command {
	return cli.Group("password", "Set passwords", "  troupe password set --user john.doe", newPasswordSet())
}

func newPasswordSet() *cobra.Command {
	var user, password string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set a user's password and end the user's sessions",
		Long: `The password is one line of standard input, without its line end: 8 to 256 characters, and not a common password.
API tokens stay valid.`,
		Example: "  troupe password set --user john.doe < password.txt\n" +
			"  read -rs P && printf %s \"$P\" | troupe password set --home /srv/troupe --user john.doe",
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if user == "" {
				return cli.Usagef("--user is missing")
			}
			if cli.IsTerminal(cmd.InOrStdin()) {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "New password of %s (it shows as you type): ", user)
			}
			if password, err = readPassword(cmd.InOrStdin()); err != nil {
				return fmt.Errorf("read the password: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "login name of the user (required)")
	return administering(cmd, func(ctx context.Context, a adminClient, _ []string) error {
		return a.SetPassword(ctx, identity.UserID(user), password)
	})
}

// At a terminal it does not wait for the end of the input. Errors never show what was read.
func readPassword(in io.Reader) (string, error) {
	read := io.ReadAll
	if cli.IsTerminal(in) {
		read = func(in io.Reader) ([]byte, error) { return bufio.NewReader(in).ReadBytes('\n') }
	}
	text, err := read(io.LimitReader(in, passwordLineMax+2)) // a line end and more are seen
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	case len(rest) > 0:
		return "", errors.New("there is more than one line on standard input")
	case len(line) > passwordLineMax:
		return "", errors.New("the line on standard input is too long")
	case len(line) == 0:
		return "", errors.New("there is no password on standard input")
	}
	return string(line), nil
}
