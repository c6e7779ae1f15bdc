package gateway

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"troupe/gateway/internal/kernel"
)

// contract is openapi.yaml, read so that exchanges can be held against it. Its
// methods are safe for concurrent use.
type contract struct {
	doc        *openapi3.T
	operations []operation

	mu   sync.Mutex
	seen map[uint64]error // by what was looked at; guarded by mu
}

// operation is one method of one path.
type operation struct {
	method, path string
	*openapi3.Operation
	item *openapi3.PathItem
	// matches finds the path with its parameters.
	matches *regexp.Regexp
}

// theInterface is the document of the tree.
var theInterface = sync.OnceValue(func() *contract {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/x-tar", openapi3filter.FileBodyDecoder)
	d, err := describe(openapiYAML)
	if err != nil {
		panic("openapi.yaml: " + err.Error())
	}
	return d
})

var (
	constant = regexp.MustCompile(`\bconst: ("[^"]*"|[^ "][^,}\n]*)`)
	newer    = regexp.MustCompile(`(?m)(?:^|[{,]) *(?:if|contains|prefixItems|patternProperties|propertyNames|dependent\w+|unevaluated\w+|content(?:Schema|Encoding)):`)
)

// describe reads a document. An object that lists its members has no others here: the document
// leaves room for later versions, but this version has none. Values are looked at as in OpenAPI 3.0,
// which suffices once each constant is an enum: for 3.1 the library compiles the schema for each value.
func describe(source []byte) (*contract, error) {
	if found := newer.Find(source); found != nil {
		return nil, fmt.Errorf("the reader of 3.0 passes over %s", found)
	}
	doc, err := openapi3.NewLoader().LoadFromData(constant.ReplaceAll(source, []byte("enum: [$1]")))
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		return nil, err
	}
	doc.OpenAPI = "3.0.3"
	for _, schema := range doc.Components.Schemas {
		if s := schema.Value; s.Type.Is("object") && s.Properties != nil && s.AdditionalProperties.Has == nil {
			closed := false
			s.AdditionalProperties.Has = &closed
		}
	}
	d := &contract{doc: doc, seen: map[uint64]error{}}
	parameter := regexp.MustCompile(`\\\{[^}]+\\\}`)
	for path, item := range doc.Paths.Map() {
		matches := regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(path), "([^/]*)") + "$")
		for method, o := range item.Operations() {
			d.operations = append(d.operations, operation{method, path, o, item, matches})
		}
	}
	// A path without parameters comes before one that has some at the same place.
	slices.SortFunc(d.operations, func(a, b operation) int { return strings.Compare(a.path, b.path) })
	return d, nil
}

// spoken is one exchange: a request and what came back.
type spoken struct {
	base         string // the base path of the server
	method       string
	url          *url.URL
	header       http.Header
	body         []byte
	status       int
	answerHeader http.Header
	answer       []byte
}

var seed = maphash.MakeSeed()

// check returns what the document does not say of an exchange.
func (d *contract) check(s *spoken) error {
	if err := cmp.Or(d.look(s), s.lookAtCommonHeaders()); err != nil {
		return fmt.Errorf("openapi.yaml does not describe %s %s: %d %.200s: %w", s.method, s.url, s.status, s.answer, err)
	}
	return nil
}

// once looks at what was not looked at before. Tests repeat themselves, and schemas
// are slow.
func (d *contract) once(look func() error, format string, args ...any) error {
	var h maphash.Hash
	h.SetSeed(seed)
	fmt.Fprintf(&h, format, args...)
	d.mu.Lock()
	err, known := d.seen[h.Sum64()]
	d.mu.Unlock()
	if known {
		return err
	}
	err = look()
	d.mu.Lock()
	d.seen[h.Sum64()] = err
	d.mu.Unlock()
	return err
}

// lookAtCommonHeaders holds gateway/INTERFACE.md, "Common headers".
func (s *spoken) lookAtCommonHeaders() error {
	want := map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
	if s.answerHeader.Get("Content-Type") != "application/json" || strings.HasSuffix(s.url.Path, "/openapi.json") {
		delete(want, "Cache-Control") // pages and files have their own
	}
	for name, value := range want {
		if got := s.answerHeader.Values(name); !slices.Equal(got, []string{value}) {
			return fmt.Errorf("the header %s is %q, want %q", name, got, value)
		}
	}
	if vary := s.answerHeader.Values("Vary"); len(vary) != 1 || !strings.HasPrefix(vary[0], "Cookie, Authorization, Authentication") {
		return fmt.Errorf("the header Vary is %q", vary)
	}
	if retry := s.answerHeader.Get("Retry-After"); (retry != "") != (s.status == http.StatusServiceUnavailable || s.status == http.StatusTooManyRequests) {
		return fmt.Errorf("the header Retry-After is %q", retry)
	}
	return nil
}

func (d *contract) look(s *spoken) error {
	path, below := strings.CutPrefix(s.url.Path, s.base)
	if !below {
		path = ""
	}
	o, others := d.find(s.method, path)
	if !below || s.url.Host != "" || kernel.HasEncodedSlash(s.url.RawPath) {
		o, others = nil, false
	}
	if o == nil {
		return d.lookOutside(s, path, others)
	}
	if s.status/100 == 2 || s.status/100 == 3 {
		if err := d.once(func() error { return d.lookAtRequest(o, path, s) }, "%s %s %v\n%s", o.OperationID, s.url, o.headers(s.header), s.body); err != nil {
			return err
		}
	}
	declared := o.Responses.Status(s.status)
	if declared == nil && s.status == http.StatusRequestEntityTooLarge { // everywhere, says the description
		declared = d.doc.Components.Responses[d.word(path, "TooLarge")]
	}
	if declared == nil {
		return fmt.Errorf("%s has no status %d", o.OperationID, s.status)
	}
	return d.lookAtAnswer(o.OperationID, declared.Value, s)
}

// find returns the operation of a method and a path, or whether the path has
// others.
func (d *contract) find(method, path string) (found *operation, others bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range d.operations {
		switch o := &d.operations[i]; {
		case !o.matches.MatchString(path):
		case o.method == method:
			return o, true
		default:
			others = true
		}
	}
	return nil, others
}

// word names a response in the words of the group that a path is of.
func (d *contract) word(path, name string) string {
	if strings.HasPrefix(path, kernel.PortalPath+"/") || strings.HasPrefix(path, kernel.RuntimePath+"/") {
		return "Portal" + name
	}
	return name
}

// lookOutside is for what no operation takes.
func (d *contract) lookOutside(s *spoken, path string, others bool) error {
	name, status := "NotFound", http.StatusNotFound
	if others {
		name, status = "MethodNotAllowed", http.StatusMethodNotAllowed
	}
	if others && s.status == http.StatusNotFound && emptySegment.MatchString(path) {
		name, status = "NotFound", http.StatusNotFound // a parameter is missing
	}
	if s.status == http.StatusOK && s.method == http.MethodOptions && s.answerHeader.Get("Access-Control-Allow-Methods") != "" {
		return nil // a browser asks whether it may
	}
	if s.status != status {
		return fmt.Errorf("there is no such operation, so it must be %d", status)
	}
	name = d.word(path, name)
	if name == "NotFound" {
		name = "OwnNotFound" // it can be a page
	}
	return d.lookAtAnswer(name, d.doc.Components.Responses[name].Value, s)
}

var emptySegment = regexp.MustCompile(`//|/$`)

// lookAtRequest holds a request that was taken against its operation.
func (d *contract) lookAtRequest(o *operation, path string, s *spoken) error {
	input := d.input(o, s)
	names := regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(o.path, -1)
	for i, value := range o.matches.FindStringSubmatch(path)[1:] {
		input.PathParams[names[i][1]] = value
	}
	if len(s.body) == 0 && o.RequestBody != nil {
		return errors.New("it was taken without a body")
	}
	if o.RequestBody == nil {
		input.Options.ExcludeRequestBody = true
	}
	return openapi3filter.ValidateRequest(context.Background(), input)
}

func (o *operation) headers(h http.Header) (values [][]string) {
	for _, p := range o.Parameters {
		if p.Value.In == "header" {
			values = append(values, h.Values(p.Value.Name))
		}
	}
	return values
}

func (d *contract) input(o *operation, s *spoken) *openapi3filter.RequestValidationInput {
	r := &http.Request{Method: o.method, URL: s.url, Header: maps.Clone(s.header), Body: io.NopCloser(bytes.NewReader(s.body)), ContentLength: int64(len(s.body))}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json") // with a token it may be missing
	}
	return &openapi3filter.RequestValidationInput{
		Request: r, PathParams: map[string]string{}, QueryParams: s.url.Query(),
		Route:   &routers.Route{Spec: d.doc, Path: o.path, PathItem: o.item, Method: o.method, Operation: o.Operation},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true},
	}
}

// everywhere are the headers that any answer may have.
var everywhere = []string{
	"Allow", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Security-Policy", "Content-Type", "Cross-Origin-Opener-Policy",
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Date", "Referrer-Policy", "Strict-Transport-Security", "Vary", "X-Accel-Buffering", "X-Content-Type-Options", "X-Frame-Options",
}

// lookAtAnswer holds an answer against what is declared for what has a name.
func (d *contract) lookAtAnswer(name string, declared *openapi3.Response, s *spoken) error {
	header := maps.Clone(s.answerHeader)
	delete(header, "Date")
	delete(header, "Retry-After")
	return d.once(func() error { return d.lookAtNewAnswer(declared, s) },
		"%s %d %t %t %v\n%s", name, s.status, s.method == http.MethodHead, s.answerHeader.Get("Retry-After") == "", header, s.answer)
}

func (d *contract) lookAtNewAnswer(declared *openapi3.Response, s *spoken) error {
	for name := range s.answerHeader {
		known := slices.ContainsFunc(slices.Collect(maps.Keys(declared.Headers)), func(n string) bool { return strings.EqualFold(n, name) })
		if !known && !slices.Contains(everywhere, name) {
			return fmt.Errorf("the header %s is not declared", name)
		}
	}
	responses := openapi3.NewResponses()
	responses.Set(fmt.Sprint(s.status), &openapi3.ResponseRef{Value: declared})
	operation := operation{method: http.MethodGet, path: "/", Operation: &openapi3.Operation{Responses: responses}}
	input := &openapi3filter.ResponseValidationInput{RequestValidationInput: d.input(&operation, s), Status: s.status, Header: maps.Clone(s.answerHeader)}
	input.Header.Del("Content-Encoding")
	if len(input.Header["Set-Cookie"]) > 1 {
		input.Header["Set-Cookie"] = input.Header["Set-Cookie"][:1] // its reader takes one
	}
	mediaType, _, err := mime.ParseMediaType(s.answerHeader.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type: %w", err)
	}
	if s.status == http.StatusNotModified {
		return nil
	}
	body, err := s.unpacked()
	if err != nil {
		return err
	}
	content := declared.Content.Get(mediaType)
	switch {
	case content == nil:
		return fmt.Errorf("the content type %s is not declared for %d", mediaType, s.status)
	case mediaType == "application/json" && s.method != http.MethodHead:
		input.SetBodyBytes(body)
		input.Options = &openapi3filter.Options{IncludeResponseStatus: true}
	default:
		input.Options = &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: true}
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		return err
	}
	switch mediaType {
	case "text/event-stream":
		return d.lookAtStream(content, body)
	case "application/x-ndjson":
		return d.lookAtLines(content, body)
	case "text/plain":
		if s.method != http.MethodHead {
			return content.Schema.Value.VisitJSON(string(body))
		}
	}
	return nil
}

// lookAtStream holds each whole event of a stream against the schema of its kind.
func (d *contract) lookAtStream(content *openapi3.MediaType, body []byte) error {
	kinds, _ := content.Extensions["x-events"].(map[string]any)
	for event := range strings.SplitSeq(string(body), "\n\n") {
		name, text := "", ""
		for line := range strings.SplitSeq(event, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "event":
				name = value
			case "data":
				text += value + "\n"
			}
		}
		if name == "" {
			continue
		}
		reference, _ := kinds[name].(map[string]any)
		schema, known := strings.CutPrefix(fmt.Sprint(reference["$ref"]), "#/components/schemas/")
		if !known {
			return fmt.Errorf("the event %q is not declared", name)
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return fmt.Errorf("event %s: %w", name, err)
		}
		if err := d.doc.Components.Schemas[schema].Value.VisitJSON(value); err != nil {
			return fmt.Errorf("event %s: %w", name, err)
		}
	}
	return nil
}

// lookAtLines holds each line against the schema of all.
func (d *contract) lookAtLines(content *openapi3.MediaType, body []byte) error {
	reference, _ := content.Extensions["x-line"].(map[string]any)
	schema := strings.TrimPrefix(fmt.Sprint(reference["$ref"]), "#/components/schemas/")
	for line := range strings.Lines(string(body)) {
		var value any
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			return fmt.Errorf("line %s: %w", line, err)
		}
		if err := d.doc.Components.Schemas[schema].Value.VisitJSON(value); err != nil {
			return fmt.Errorf("line %s: %w", line, err)
		}
	}
	return nil
}

// describes reports whether the document says that a request can be answered with a
// status.
func describes(r request, status int) bool {
	path, _, _ := strings.Cut(r.Path, "?")
	o, _ := theInterface().find(r.Method, path)
	return o != nil && o.Responses.Status(status) != nil
}

func (s *spoken) unpacked() ([]byte, error) {
	if s.answerHeader.Get("Content-Encoding") != "gzip" || s.method == http.MethodHead {
		return s.answer, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(s.answer))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// observed is a server whose exchanges are held against the document. Whatever
// tests ask of a handler goes through it.
type observed struct {
	*Server
	mu     sync.Mutex // NB: a handler may outlive the test's last line
	faults []error    // guarded by mu
}

// observe returns the server as a handler. When the test ends, it fails with every
// exchange that the document does not describe. With -short nobody looks: schemas are
// slow under the race detector, and share nothing with the server.
func observe(t testing.TB, s *Server) http.Handler {
	if testing.Short() {
		return s
	}
	o := &observed{Server: s}
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, err := range o.faults[:min(len(o.faults), 5)] {
			t.Error(err)
		}
	})
	return o
}

// observedBodyMax is above what tests send to be taken.
const observedBodyMax = 100 << 10

func (o *observed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// NB: of a body that is too large, and of one whose length nobody knows, net/http
	// wants to see its own writer.
	if _, direct := w.(*recorder); !direct && (r.ContentLength < 0 || r.ContentLength > observedBodyMax) {
		o.Server.ServeHTTP(w, r)
		return
	}
	s := &spoken{base: o.kernel.Options.BasePath, method: r.Method, url: r.URL, header: r.Header.Clone()}
	var sent bytes.Buffer
	if r.Body != nil && r.Body != http.NoBody {
		body := r.Body
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(body, &sent), body}
	}
	c := &copier{ResponseWriter: w, first: func(h http.Header) { s.answerHeader = h.Clone() }}
	o.Server.ServeHTTP(c, r)
	if c.status == 0 || c.body.Len() > keptBytesMax {
		return // it was cut, or does not end
	}
	s.body, s.status, s.answer = sent.Bytes(), c.status, c.body.Bytes()
	if err := theInterface().check(s); err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.faults = append(o.faults, err)
	}
}

// keptBytesMax bounds what is kept of an answer, because schemas are slow.
const keptBytesMax = 1 << 20

type copier struct {
	http.ResponseWriter
	first  func(http.Header)
	status int
	body   bytes.Buffer
}

func (c *copier) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *copier) WriteHeader(status int) {
	c.status = status
	c.first(c.Header())
	c.ResponseWriter.WriteHeader(status)
}

func (c *copier) Write(p []byte) (int, error) {
	if c.body.Len() <= keptBytesMax {
		c.body.Write(p)
	}
	return c.ResponseWriter.Write(p)
}
