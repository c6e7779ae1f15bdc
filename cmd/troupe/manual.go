package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
)

// newManual is troupe man, which packages of systems call.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write a manual page for each command",
		Long: `Writes troupe.1, troupe-serve.1 and so on into a folder, which is made if it is missing. With MANPATH or as
/usr/local/share/man/man1, man troupe-serve shows them.`,
		Example: "  troupe man /usr/local/share/man/man1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root, this := cmd.Root(), build.This()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "troupe " + this.Version, Manual: "troupe"}
			if revised, err := time.Parse(time.RFC3339, this.Time); err == nil { // so that one revision has the same pages every time
				header.Date = &revised
			}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return err
			}
			pages, err := os.ReadDir(args[0])
			if err == nil {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), args[0]+" has "+cli.Plural(len(pages), "file")+" now")
			}
			return err
		},
	}
}
