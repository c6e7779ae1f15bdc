package operate

import (
	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

// byKey are the flags that name an instance by its business key.
type byKey struct{ key, public, private string }

var byKeyFlags = [...]string{"by-key", "create-public", "create-private"}

func (b *byKey) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.key, byKeyFlags[0], "", "send to the instance with this business key, in place of INSTANCE")
	f.StringVar(&b.public, byKeyFlags[1], "", "create the instance with this svcPublic if there is none: a JSON object, @file, or -")
	f.StringVar(&b.private, byKeyFlags[2], "", "create the instance with this svcPrivate if there is none: a JSON object, @file, or -")
}

func (b *byKey) isGiven(cmd *cobra.Command) bool {
	for _, name := range byKeyFlags {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

func (b *byKey) check(cmd *cobra.Command, args []string) error {
	switch {
	case b.key == "" && cmd.Flags().Changed(byKeyFlags[0]):
		return cli.Usagef("--by-key is empty")
	case b.key == "":
		return cli.Usagef("--create-public and --create-private need --by-key, with the key of the instance")
	case len(args) != 2:
		return cli.Usagef("--by-key stands in place of INSTANCE: troupe instance send WORKFLOW --by-key KEY EVENT")
	}
	return nil
}

// name puts into r which instance it is for. eventData is the value of --data.
func (b *byKey) name(cmd *cobra.Command, r *client.SendRequest, eventData string) error {
	r.BusinessKey = b.key
	if b.public == "" && b.private == "" {
		return nil
	}
	read := 0
	for _, from := range []string{eventData, b.public, b.private} {
		if from == "-" {
			read++
		}
	}
	if read > 1 {
		return cli.Usagef("standard input can be read only once")
	}
	r.Create = &api.CreateData{}
	var err error
	if r.Create.Public, err = cli.JsonInput(cmd, byKeyFlags[1], b.public); err == nil {
		r.Create.Private, err = cli.JsonInput(cmd, byKeyFlags[2], b.private)
	}
	return err
}
