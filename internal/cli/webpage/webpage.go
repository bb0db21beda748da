// Package webpage has what the HTML pages of both programs have in common: their style, and the
// policy by which a page loads nothing and runs no script but its own. A page opens from a file and
// needs nothing but itself.
package webpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
)

//go:embed base.css
var base string

// Style is the common style, before the rules of a page's own.
func Style(own string) template.CSS { return template.CSS(base + own) }

// Policy is a Content-Security-Policy that lets the page's own style and script work, and nothing
// be loaded from anywhere. A page without a script has "".
func Policy(script string) string {
	policy := "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
	if script == "" {
		return policy
	}
	sum := sha256.Sum256([]byte(script))
	return policy + "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
