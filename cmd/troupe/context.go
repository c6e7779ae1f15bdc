package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"troupe/gateway/client"
)

func newContext() *cobra.Command {
	return group("context", "Name the services that troupe instance asks, and keep the tokens for them",
		"  troupe token create --user john.doe | troupe context set local --address http://127.0.0.1:8080 --token-stdin\n"+
			"  troupe context use local",
		newContextList(), newContextSet(), newContextUse(), newContextRemove())
}

func newContextList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the contexts; tokens are not shown",
		Example: "  troupe context list",
		Args:    arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadContexts()
			if err != nil {
				return err
			}
			rows := [][]string{{"CURRENT", "NAME", "ADDRESS", "TOKEN"}}
			for _, p := range c.all {
				mark, token := "", "none"
				if p.Name == c.current {
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
			return (&output{to: cmd.OutOrStdout()}).table(rows)
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
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !contextName.MatchString(args[0]) {
				return usageError{errors.New("a name has 1 to 64 letters, digits, dots, dashes and underscores")}
			}
			if tokenStdin && tokenFile != "" {
				return usageError{errors.New("--token-file and --token-stdin exclude each other")}
			}
			return changeContexts(func(all *contexts) error {
				p := all.find(args[0])
				if p == nil {
					all.all = append(all.all, profile{Name: args[0]})
					p = &all.all[len(all.all)-1]
				}
				all.current = cmp.Or(all.current, p.Name)
				if err := p.change(cmd, address, tokenFile, tokenStdin); err != nil || all.current == p.Name {
					return err
				}
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the current context is still %s; troupe context use %s\n", all.current, p.Name)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&address, "address", "", "URL of the service (required for a new context)")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the API token, read each time")
	cmd.Flags().BoolVar(&tokenStdin, "token-stdin", false, "read the API token from standard input and keep it")
	return cmd
}

// change sets what the flags say.
func (p *profile) change(cmd *cobra.Command, address, tokenFile string, tokenStdin bool) error {
	if address != "" {
		if _, err := client.New(client.Options{Address: address}); err != nil {
			return usageError{fmt.Errorf("--address: %w", err)}
		}
		if (p.Token != "" || p.TokenFile != "") && !sameAddress(address, p.Address) {
			p.Token, p.TokenFile = "", ""
			if !tokenStdin && tokenFile == "" {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the token of %s was for %s and is forgotten\n", p.Name, p.Address)
			}
		}
		p.Address = address
	}
	if p.Address == "" {
		return usageError{errors.New("--address is missing")}
	}
	switch {
	case tokenStdin:
		text, err := readInput(cmd.InOrStdin())
		if err != nil {
			return fmt.Errorf("--token-stdin: %w", err)
		}
		token, err := checkedToken("--token-stdin", string(text))
		if err != nil {
			return err
		}
		p.Token, p.TokenFile = token, ""
	case tokenFile != "":
		if _, err := readTokenFile("--token-file", tokenFile); err != nil {
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
		Args:              arguments,
		ValidArgsFunction: contextArgument,
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(func(all *contexts) error {
				all.current = args[0]
				_, err := all.named(args[0])
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
		Args:              arguments,
		ValidArgsFunction: contextArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(func(all *contexts) error {
				if _, err := all.named(args[0]); err != nil {
					return err
				}
				all.all = slices.DeleteFunc(all.all, func(p profile) bool { return p.Name == args[0] })
				if all.current == args[0] {
					all.current = ""
					_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "there is no current context now; troupe context use NAME")
				}
				return nil
			})
		},
	}
}

// contextArgument has the shell complete the name of a context.
func contextArgument(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return contextsKnown(), cobra.ShellCompDirectiveNoFileComp
}
