package config

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/gateway"
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

// sitesType is the type of the setting that names other sites.
const sitesType = "sites"

// origins is a list of sites, separated by commas.
func origins(to *[]string) pflag.Value {
	return cli.ValueOf(to, sitesType, func(s string) (list []string, err error) {
		for element := range strings.SplitSeq(s, ",") {
			if s != "" {
				list = append(list, strings.TrimSpace(element))
			}
		}
		return list, gateway.CheckOrigins(list)
	}, func(list []string) string { return strings.Join(list, ",") })
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

const endpointsType = "endpoints"

type endpoint struct {
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Secret     string            `json:"secret,omitempty"`
	SecretFile string            `json:"secretFile,omitempty"`
}

type endpointMap map[string]map[string]endpoint

func endpoints(to *endpointMap) pflag.Value {
	return cli.ValueOf(to, endpointsType, parseEndpoints, showEndpoints)
}

func parseEndpoints(s string) (endpointMap, error) {
	n, err := document.Parse(endpointsType, []byte(s))
	if err != nil {
		return nil, errors.New("must map workflows to webhooks, and webhooks to url, headers, secret or secretFile")
	}
	if n.Kind == document.Null {
		return nil, nil
	}
	faults := &document.Collector{File: endpointsType}
	of := readEndpoints(faults, n)
	for _, f := range faults.Faults() {
		f.File, f.Line = "", 0 // it is one line
		return nil, errors.New(strings.TrimPrefix(f.Error(), ": "))
	}
	return of, nil
}

func readEndpoints(faults *document.Collector, n *document.Node) endpointMap {
	of := endpointMap{}
	for _, w := range fieldsOf(faults, n) {
		of[w.Key.Text] = map[string]endpoint{}
		for _, h := range fieldsOf(faults, w.Value) {
			of[w.Key.Text][h.Key.Text] = readEndpoint(faults, h.Value)
		}
	}
	return of
}

func fieldsOf(faults *document.Collector, n *document.Node) []document.Field {
	if n.Kind != document.Mapping {
		faults.Add(n, "must be a mapping")
		return nil
	}
	return n.Fields
}

func readEndpoint(faults *document.Collector, n *document.Node) (e endpoint) {
	if len(fieldsOf(faults, n)) == 0 {
		return e
	}
	faults.Known(n, "url", "headers", "secret", "secretFile")
	for key, to := range map[string]*string{"url": &e.URL, "secret": &e.Secret, "secretFile": &e.SecretFile} {
		if at := n.Field(key); at != nil {
			*to = faults.Text(at)
		}
	}
	if at := n.Field("headers"); at != nil {
		e.Headers = map[string]string{}
		for _, h := range fieldsOf(faults, at) {
			e.Headers[h.Key.Text] = faults.Text(h.Value)
		}
	}
	if e.URL != "" {
		if err := statemachine.CheckWebhookURL(e.URL); err != nil {
			faults.Add(n.Field("url"), "%v", err)
		}
	}
	if e.Secret != "" && e.SecretFile != "" {
		faults.Add(n, "secret and secretFile are both set")
	}
	return e
}

// Values of headers and secrets are not shown.
func showEndpoints(of endpointMap) string {
	if len(of) == 0 {
		return ""
	}
	shown := endpointMap{}
	for workflow, hooks := range of {
		shown[workflow] = map[string]endpoint{}
		for name, e := range hooks {
			headers := map[string]string{}
			for h := range e.Headers {
				headers[h] = notShown
			}
			e.Headers = headers
			if e.Secret != "" {
				e.Secret = notShown
			}
			shown[workflow][name] = e
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err.Error() // strings always can be written
	}
	return string(text)
}
