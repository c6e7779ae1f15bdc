package gateway

import (
	"sync"

	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/gateway/console"
)

// schemaFiles are the JSON Schemas of a home's text files by name. The first call makes them, because
// most commands of the program never serve one.
var schemaFiles = sync.OnceValue(func() map[string]*staticFile {
	all := map[string]*staticFile{}
	for _, s := range home.Schemas() {
		body := []byte(s.Text)
		all[s.File()] = newStaticFile(body, valueSchema, valueShellCache, console.Tag(body))
	}
	return all
})

// showSchema answers GET /schemas/{file}.
func showSchema(x *exchange) error {
	schema, ok := schemaFiles()[x.params.ByName("file")]
	if !ok {
		return failure.ErrNotFound
	}
	return x.sendStatic(schema)
}

var valueSchema = []string{"application/schema+json"}
