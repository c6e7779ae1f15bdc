package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChangedFilesCount holds what the tour promises of files: a new file and a
// changed right count while the server runs. It does not look at the clock.
func TestChangedFilesCount(t *testing.T) {
	p := startProgram(t)
	home := filepath.Join(p.dir, "troupe-home")
	putFile(t, home, "repository/reports/new.rml", "")
	rights, err := os.ReadFile(filepath.Join(home, "rights.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(rights), "role:manager", "role:employee", 1)
	if changed == string(rights) {
		t.Fatal("rights.yaml has no role:manager")
	}
	putFile(t, home, "rights.yaml", changed)
	const asks = `for i in $(seq 200); do
  curl -s -H "Authentication: svc.token $(go run ./cmd/troupe token create --user john.doe)" http://127.0.0.1:8080/repository/api/v1/list-files?extension=rml | tee out
  grep -q new.rml out && exit; sleep 0.1
done`
	if got := p.shell(asks); !strings.HasSuffix(got, `["/reports/leave-summary.rml","/reports/new.rml"]`) {
		t.Errorf("after the changes John is shown %s", got)
	}
}
