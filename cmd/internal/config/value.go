package config

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// prefixesType is the type of settings that name networks.
const prefixesType = "addresses"

// prefixes is a list of ranges of addresses, separated by commas. An address alone is a range of one.
func prefixes(to *[]netip.Prefix) pflag.Value {
	return cli.ValueOf(to, prefixesType, parsePrefixes, showPrefixes)
}

func parsePrefixes(s string) (list []netip.Prefix, err error) {
	if s == "" {
		return nil, nil
	}
	for element := range strings.SplitSeq(s, ",") {
		element = strings.TrimSpace(element)
		address, err := netip.ParseAddr(element)
		prefix := netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		if err != nil {
			prefix, err = netip.ParsePrefix(element)
		}
		// NB: a range has no zone; netip takes everything behind a % for one.
		if err != nil || !prefix.IsValid() || prefix.Addr().Is4In6() || address.Zone() != "" {
			return nil, errors.New("must be addresses or ranges such as 10.0.0.5,192.168.0.0/16, separated by commas")
		}
		list = append(list, prefix.Masked())
	}
	return list, nil
}

func showPrefixes(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

func words(to *[]string) pflag.Value {
	return cli.ValueOf(
		to, "string",
		func(s string) ([]string, error) { return strings.Fields(s), nil }, // NB: without a word empty, not nil: nil would be the default
		func(list []string) string { return strings.Join(list, " ") },
	)
}

// secretType is the type of settings that are not shown, and that can stand in a file of their own.
const secretType = "secret"

const notShown = "(not shown)"

// Only whether there is one is shown.
func secret(to *string) pflag.Value {
	return cli.ValueOf(
		to, secretType,
		func(s string) (string, error) { return s, nil },
		func(s string) string {
			if s == "" {
				return ""
			}
			return notShown
		},
	)
}

// rolesType is the type of the one setting that is not a single value.
const rolesType = "roles"

func roles(to *map[string][]identity.RoleID) pflag.Value {
	return cli.ValueOf(to, rolesType, parseRoles, showRoles)
}

var errRoles = errors.New("must map values to roles, such as {staff: employee, heads: [manager, employee]}")

func parseRoles(s string) (map[string][]identity.RoleID, error) {
	n, err := document.Parse("roles", []byte(s))
	if err != nil || n.Kind != document.Mapping && n.Kind != document.Null {
		return nil, errRoles
	}
	of := map[string][]identity.RoleID{}
	for _, f := range n.Fields {
		items := []*document.Node{f.Value}
		if f.Value.Kind == document.Sequence {
			items = f.Value.Items
		}
		for _, item := range items {
			if item.Kind != document.String || !statemachine.IsIdentifier(item.Text) {
				return nil, errRoles
			}
			of[f.Key.Text] = append(of[f.Key.Text], identity.RoleID(item.Text))
		}
	}
	return of, nil
}

func showRoles(of map[string][]identity.RoleID) string {
	if len(of) == 0 {
		return ""
	}
	text, err := json.Marshal(of)
	if err != nil {
		return err.Error() // strings always can be written
	}
	return string(text)
}
