package config

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"troupe/cmd/internal/cli"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

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
		return nil, errors.New("must map workflows to webhooks, and those to url, headers, secret or secretFile")
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
