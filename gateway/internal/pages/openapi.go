package pages

import (
	"sync"

	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/reference"
)

// Description is the description of the interface in its three forms. They are made at the first request for one,
// because most commands of the program never serve one.
type Description struct{ text, JSON, Page func() *kernel.StaticFile }

// NewDescription makes the forms of openapi.yaml.
func NewDescription(yaml []byte) *Description {
	return &Description{
		text: sync.OnceValue(func() *kernel.StaticFile { return describing(yaml, valueYAML) }),
		JSON: sync.OnceValue(func() *kernel.StaticFile {
			return describing(described(yaml, (*reference.Document).JSON), kernel.ValueJSON)
		}),
		Page: sync.OnceValue(func() *kernel.StaticFile {
			return describing(described(yaml, (*reference.Document).Page), kernel.ValueHTML)
		}),
	}
}

func describing(body []byte, contentType []string) *kernel.StaticFile {
	return kernel.NewStaticFile(body, contentType, valueShellCache, console.Tag(body))
}

// described turns openapi.yaml into something else.
func described(yaml []byte, into func(*reference.Document) ([]byte, error)) []byte {
	d, err := reference.Parse(yaml)
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
func (g *Group) showInterfaceYAML(x *kernel.Exchange) error {
	return x.SendStatic(g.description.text())
}

func (g *Group) showInterfaceJSON(x *kernel.Exchange) error {
	return x.SendStatic(g.description.JSON())
}

// showInterface answers GET /docs.
func (g *Group) showInterface(x *kernel.Exchange) error {
	x.SetPageHeaders(valueReferencePolicy)
	return x.SendStatic(g.description.Page())
}

var (
	valueYAML            = []string{"application/yaml"}
	valueReferencePolicy = []string{reference.Policy}
)
