package credential

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
)

// passwordLineMax bounds the line that holds a password.
const passwordLineMax = 8 << 10

func newPassword() *cobra.Command {
	return cli.Group("password", "Set the passwords that people sign in with", "  troupe password set --user john.doe", newPasswordSet())
}

func newPasswordSet() *cobra.Command {
	var user, password string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set a user's password from standard input, and end the user's sessions",
		Long: "Give a user a new password, and end all sessions of the user. The password is one\n" +
			"line of standard input, without its line end. It has 8 to 256 characters of any kind and\n" +
			"is not one of the passwords that are guessed first. Tokens stay as they are.",
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
