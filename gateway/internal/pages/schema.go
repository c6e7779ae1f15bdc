package pages

import (
	"sync"

	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
)

// schemaFiles are the JSON Schemas of a home's text files by name. The first call makes them, because
// most commands of the program never serve one.
var schemaFiles = sync.OnceValue(func() map[string]*kernel.StaticFile {
	all := map[string]*kernel.StaticFile{}
	for _, s := range home.Schemas() {
		body := []byte(s.Text)
		all[s.File()] = kernel.NewStaticFile(body, valueSchema, valueShellCache, console.Tag(body))
	}
	return all
})

// showSchema answers GET /schemas/{file}.
func showSchema(x *kernel.Exchange) error {
	schema, ok := schemaFiles()[x.Params.ByName("file")]
	if !ok {
		return failure.ErrNotFound
	}
	return x.SendStatic(schema)
}

var valueSchema = []string{"application/schema+json"}
