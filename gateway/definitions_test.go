package gateway

import "testing"

// TestShowingDefinitions holds gateway/INTERFACE.md, "Published definitions".
func TestShowingDefinitions(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const path = "/workflow/api/v1/definitions"
	for target, want := range map[string]string{
		path:              `{"definitions":[{"id":"leave","name":"Leave","current":2,"creatable":true,"versions":[1,2]}]}`,
		path + "/leave":   `{"id":"leave","version":1,"current":false,"file":"workflows/leave.yaml","text":"id: leave\n","refs":{"a.schema.json":"{}"}}`,
		path + "/leave/7": `{"id":"leave","version":7,"current":false,"file":"workflows/leave.yaml","text":"id: leave\n","refs":{"a.schema.json":"{}"}}`,
	} {
		if a := s.do(t, request{Method: "GET", Path: target, Headers: []string{withModToken}}); a.Status != 200 || a.Body != want {
			t.Errorf("%s: got %d %s, want %s", target, a.Status, a.Body, want)
		}
	}
	for _, version := range []string{"0", "01", "+1", "-1", "1.0", "x", "9223372036854775808", "99999999999999999999"} {
		if a := s.do(t, request{Method: "GET", Path: path + "/leave/" + version, Headers: []string{withModToken}}); a.Status != 404 {
			t.Errorf("version %s: got %d, want 404", version, a.Status)
		}
	}
}
