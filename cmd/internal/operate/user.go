package operate

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newUser() *cobra.Command {
	return cli.Group("user", "List users, and what each may do",
		"  troupe user show john.doe --home ./troupe-home",
		newUserList(), newUserShow(), newUserCan())
}

func newUserList() *cobra.Command {
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List the users with their roles (needs mod-admin)",
		Example: "  troupe user list --home ./troupe-home",
	}
	p.add(cmd)
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		l := &lister{cmd: cmd, out: out, member: "users", things: "users", head: []string{"USER", "NAME", "ROLES", "PRIVILEGES", "STATE"}}
		return list(l, p.all, client.UsersRequest{Limit: p.limit, Cursor: p.cursor}, c.Users, c.UsersPages, func(page *client.Page[api.User]) *listPage {
			return pageOf(page.Raw, page.Next, page.Items, func(u *api.User) []string {
				var privileges []string
				for _, p := range u.Privileges {
					privileges = append(privileges, p.ID)
				}
				return []string{u.ID, u.Name, strings.Join(u.Roles, ", "), strings.Join(privileges, ", "), stateOf(u)}
			})
		})
	})
}

func stateOf(u *api.User) string {
	if u.Disabled {
		return "disabled"
	}
	return "enabled"
}

func newUserShow() *cobra.Command {
	return operating(&cobra.Command{
		Use: "show USER", Short: "Show what a user may do, and why (needs mod-admin)",
		Long:    "Each privilege has where it comes from: a role, or the user's own entry in identity.yaml.",
		Example: "  troupe user show john.doe --home ./troupe-home",
	}, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		u, raw, err := c.User(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			return out.Document(raw)
		}
		rows := [][]string{{"user", u.ID}, {"name", u.Name}, {"email", u.Email}, {"state", stateOf(&u)}, {"roles", strings.Join(u.Roles, ", ")}}
		for _, p := range u.Privileges {
			rows = append(rows, []string{p.ID, "from " + strings.Join(p.From, ", ")})
		}
		return out.Table(rows)
	})
}

func newUserCan() *cobra.Command {
	return operating(&cobra.Command{
		Use: "can USER EVENT WORKFLOW INSTANCE", Short: "Say whether a user may send an event now, and why (needs mod-admin)",
		Long: `Asks the rules of the workflow about the instance as it is now, with the user's roles in identity.yaml. Nothing is sent.
Exit code 1: the user may not.`,
		Example: "  troupe user can john.doe approve leave-request 01M7YZAB2GNTJFQE62690KHSQT --home ./troupe-home",
	}, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		p, raw, err := c.Can(cmd.Context(), args[0], args[1], args[2], args[3])
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			err = out.Document(raw)
		} else {
			for _, why := range p.Why {
				_, wrote := io.WriteString(out.To, client.Printable(why)+"\n")
				err = cmp.Or(err, wrote)
			}
		}
		if err == nil && !p.Allowed {
			err = fmt.Errorf("no: %s may not send %s", args[0], args[1])
		}
		return err
	})
}

func newRole() *cobra.Command {
	list := operating(&cobra.Command{
		Use: "list", Short: "List the roles with their privileges and users (needs mod-admin)",
		Example: "  troupe role list --home ./troupe-home",
	}, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		page, err := c.Roles(cmd.Context())
		if err != nil {
			return err
		}
		l := &lister{cmd: cmd, out: out, member: "roles", things: "roles", head: []string{"ROLE", "NAME", "PRIVILEGES", "USERS"}}
		return l.one(pageOf(page.Raw, "", page.Items, func(r *api.UserRole) []string {
			return []string{r.ID, r.Name, strings.Join(r.Privileges, ", "), strings.Join(r.Users, ", ")}
		}))
	})
	return cli.Group("role", "List roles", "  troupe role list --home ./troupe-home", list)
}
