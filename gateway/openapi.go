package gateway

import (
	_ "embed"
	"sync"

	"troupe/gateway/console"
	"troupe/gateway/reference"
)

// openapiYAML is the whole interface, for machines and for people. Tests hold it
// against the table of routes, and every exchange of theirs against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// The description in its three forms. They are made at the first request for one,
// because most commands of the program never serve one.
var (
	openapiText = sync.OnceValue(func() *staticFile { return describing(openapiYAML, valueYAML) })
	openapiJSON = sync.OnceValue(func() *staticFile { return describing(described((*reference.Document).JSON), valueJSON) })
	openapiPage = sync.OnceValue(func() *staticFile { return describing(described((*reference.Document).Page), valueHTML) })
)

func describing(body []byte, contentType []string) *staticFile {
	return newStaticFile(body, contentType, valueShellCache, console.Tag(body))
}

// described turns openapi.yaml into something else.
func described(into func(*reference.Document) ([]byte, error)) []byte {
	d, err := reference.Parse(openapiYAML)
	if err != nil {
		panic("gateway: " + err.Error()) // tests hold that it can be read
	}
	body, err := into(d)
	if err != nil {
		panic("gateway: " + err.Error())
	}
	return body
}

// showInterfaceYAML and showInterfaceJSON answer with the description itself.
func showInterfaceYAML(x *exchange) error { return x.sendStatic(openapiText()) }

func showInterfaceJSON(x *exchange) error { return x.sendStatic(openapiJSON()) }

// showInterface answers GET /docs.
func showInterface(x *exchange) error {
	x.setPageHeaders(valueReferencePolicy)
	return x.sendStatic(openapiPage())
}

var (
	valueYAML            = []string{"application/yaml"}
	valueReferencePolicy = []string{reference.Policy}
)
