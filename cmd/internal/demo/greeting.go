package demo

import (
	"fmt"
	"strings"

	"troupe/actors/identity"
)

// Greeting is what the server says of the example to the person who has started it.
type Greeting struct {
	// Home is its folder, as a shell takes it. The service is at Address, with BasePath behind it.
	Home, Address, BasePath string
	Troupe                  string                                         // how the program is called
	Link                    func(user identity.UserID, next string) string // Link makes a link that signs a user in, as login.Links.Add does
	Made                    int                                            // how many requests were made
}

// guests are the people whom links sign in, and where they begin.
var guests = []struct {
	user identity.UserID
	what string
	next string
}{
	{john, "John Doe, an employee", ""},
	{mary, "Mary Major, a manager", ""},
	{olivia, "Olivia Park, an operator", "/operations"},
}

// Text is what the person reads.
func (g *Greeting) Text() string {
	var b strings.Builder
	base := g.Address + g.BasePath
	if g.Made > 0 {
		fmt.Fprintf(&b, "%d requests were made as an example.\n", g.Made)
	}
	if g.Link != nil {
		b.WriteString("\nOpen a link to sign in. Each works once, in a browser on this machine, for ten minutes:\n\n")
		for _, who := range guests {
			next := who.next
			if next != "" {
				next = g.BasePath + next
			}
			fmt.Fprintf(&b, "  %-25s %s%s\n", who.what, base, g.Link(who.user, next))
		}
	} else {
		b.WriteString("\nThere are no links to sign in, because other machines reach this address.\n")
	}
	fmt.Fprintf(&b, "\nFor programs and passwords, in a second terminal:\n\n"+
		"  TOKEN=$(%s token create --home %s --user john.doe)\n"+
		"  curl -s -H \"Authorization: svc.token $TOKEN\" -H \"Content-Type: application/json\" -d '{\"workflowId\":\"leave-request\"}' %s/workflow/api/v1/create\n"+
		"  echo 'a password' | %s password set --home %[2]s --user john.doe\n", g.Troupe, g.Home, base, g.Troupe)
	return b.String()
}
