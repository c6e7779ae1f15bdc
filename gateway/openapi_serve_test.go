package gateway

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheDocumentAsJSON compares with what another reader of YAML makes of the
// source.
func TestTheDocumentAsJSON(t *testing.T) {
	var forms [][]byte
	for _, source := range [][]byte{openapiYAML, described.JSON().Body} {
		doc, err := openapi3.NewLoader().LoadFromData(source)
		require.NoError(t, err)
		form, err := doc.MarshalJSON()
		require.NoError(t, err)
		forms = append(forms, form)
	}
	assert.True(t, bytes.HasPrefix(described.JSON().Body, []byte(`{"openapi":"3.1.0",`)) && bytes.Equal(forms[0], forms[1]), described.JSON().Body)
}

// TestThePageHasEveryOperation with its parameters and statuses.
func TestThePageHasEveryOperation(t *testing.T) {
	page := string(described.Page().Body)
	for _, o := range theInterface().operations {
		_, article, found := strings.Cut(page, `<article id="`+o.OperationID+`"`)
		article, _, _ = strings.Cut(article, "</article>")
		assert.True(t, found && strings.Contains(article, o.path) && strings.Contains(page, `<a href="#`+o.OperationID+`">`), "the page has no %s", o.OperationID)
		for _, p := range slices.Concat(o.Parameters, o.item.Parameters) {
			assert.Contains(t, article, `<dt><code>`+p.Value.Name+`</code>`, "%s lacks the parameter %s", o.OperationID, p.Value.Name)
		}
		for status := range o.Responses.Map() {
			assert.Contains(t, article, `<code>`+status+`</code>`, "%s lacks the status %s", o.OperationID, status)
		}
	}
}
