package pages

import (
	"net/http"
	"strings"
)

// policy is the Content-Security-Policy of all pages.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'"

// guard refuses requests for other hosts and cross-site writes, and sets the headers of every answer.
func (s *Site) guard(next http.Handler) (http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	if err := protection.AddTrustedOrigin(s.public.Scheme + "://" + s.public.Host); err != nil {
		return nil, err
	}
	protection.SetDenyHandler(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		s.plain(writer, http.StatusForbidden, "Not accepted",
			"This request comes from another site, or from an old browser. Open the page here, and send it again.")
	}))
	guarded := protection.Handler(next)
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		header := writer.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if s.public.Scheme == "https" {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !strings.EqualFold(request.Host, s.public.Host) {
			s.plain(writer, http.StatusMisdirectedRequest, "Another address", "This site has a different address. Ask an admin for it.")
			return
		}
		guarded.ServeHTTP(writer, request)
	}), nil
}
