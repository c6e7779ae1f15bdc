package credential

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/client"
)

func newContext() *cobra.Command {
	return cli.Group("context", "Name the services that troupe instance asks, and keep the tokens for them",
		"  troupe token create --user john.doe | troupe context set local --address http://127.0.0.1:8080 --token-stdin\n"+
			"  troupe context use local",
		newContextList(), newContextSet(), newContextUse(), newContextRemove())
}

func newContextList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the contexts; tokens are not shown",
		Example: "  troupe context list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connect.LoadContexts()
			if err != nil {
				return err
			}
			rows := [][]string{{"CURRENT", "NAME", "ADDRESS", "TOKEN"}}
			for _, p := range c.All {
				mark, token := "", "none"
				if p.Name == c.Current {
					mark = "*"
				}
				switch {
				case p.Token != "":
					token = "kept here"
				case p.TokenFile != "":
					token = "in " + p.TokenFile
				}
				rows = append(rows, []string{mark, p.Name, p.Address, token})
			}
			return cli.Table(cmd.OutOrStdout(), rows)
		},
	}
}

func newContextSet() *cobra.Command {
	var address, tokenFile string
	var tokenStdin bool
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a context or change it; the first one becomes the current one",
		Long: "Make a context or change it; the first one becomes the current one. What no flag says stays as it is, " +
			"but a new address forgets the token, which was for the old one.",
		Example: "  troupe token create --user john.doe | troupe context set local --address http://127.0.0.1:8080 --token-stdin\n" +
			"  troupe context set production --address https://example.org/platform --token-file ~/.troupe-token",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !connect.ContextName.MatchString(args[0]) {
				return cli.Usagef("a name has 1 to 64 letters, digits, dots, dashes and underscores")
			}
			if tokenStdin && tokenFile != "" {
				return cli.Usagef("--token-file and --token-stdin exclude each other")
			}
			return connect.ChangeContexts(func(all *connect.Contexts) error {
				p := all.Find(args[0])
				if p == nil {
					all.All = append(all.All, connect.Profile{Name: args[0]})
					p = &all.All[len(all.All)-1]
				}
				all.Current = cmp.Or(all.Current, p.Name)
				if err := changeProfile(cmd, p, address, tokenFile, tokenStdin); err != nil || all.Current == p.Name {
					return err
				}
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the current context is still %s; troupe context use %s\n", all.Current, p.Name)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&address, "address", "", "URL of the service (required for a new context)")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the API token, read each time")
	cmd.Flags().BoolVar(&tokenStdin, "token-stdin", false, "read the API token from standard input and keep it")
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
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the token of %s was for %s and is forgotten\n", p.Name, p.Address)
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
		Short:             "Make a context the current one",
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
		Short:             "Remove a context and the token that it keeps; the token itself stays valid",
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
					_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "there is no current context now; troupe context use NAME")
				}
				return nil
			})
		},
	}
}
