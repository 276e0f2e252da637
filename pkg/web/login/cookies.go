package login

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// mostPart is how many bytes a cookie has; browsers accept 4096 with its name and attributes.
	mostPart  = 3800
	mostParts = 4
)

// cookies are those of one purpose: a sealed text in parts.
type cookies struct {
	name     string
	isSecure bool
}

// newCookies are named so that browsers accept them from this host over https only, unless the public URL is http.
func newCookies(name string, isSecure bool) cookies {
	if isSecure {
		name = "__Host-" + name
	}
	return cookies{name, isSecure}
}

func (c cookies) part(number int) string { return c.name + "-" + strconv.Itoa(number) }

// read joins the parts; "" if there are none.
func (c cookies) read(request *http.Request) string {
	var all strings.Builder
	for i := range mostParts {
		one, err := request.Cookie(c.part(i))
		if err != nil || one.Value == "" {
			break
		}
		all.WriteString(one.Value)
	}
	return all.String()
}

// fits says whether a text fits in all parts.
func (c cookies) fits(text string) bool { return len(text) <= mostPart*mostParts }

// write replaces the parts. An empty text removes them.
func (c cookies) write(writer http.ResponseWriter, text string, until time.Time) {
	for i := range mostParts {
		part := text[:min(mostPart, len(text))]
		text = text[len(part):]
		one := &http.Cookie{
			Name: c.part(i), Value: part, Path: "/", HttpOnly: true, Secure: c.isSecure, SameSite: http.SameSiteLaxMode, Expires: until,
		}
		if part == "" {
			one.MaxAge, one.Expires = -1, time.Time{}
		}
		http.SetCookie(writer, one)
	}
}
