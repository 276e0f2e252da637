package expect

import (
	"context"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Create makes objects. It fails the test, as all words below do, when the API server refuses.
func Create(t testing.TB, with client.Writer, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		must(t, "creating", object, with.Create(t.Context(), object))
	}
}

// Ensure makes those of the objects that are not there.
func Ensure(t testing.TB, with client.Writer, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		must(t, "creating", object, client.IgnoreAlreadyExists(with.Create(t.Context(), object)))
	}
}

// Token asks for a token of a ServiceAccount.
func Token(t testing.TB, with client.Client, account *corev1.ServiceAccount, audiences ...string) string {
	t.Helper()
	made := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	must(t, "asking for a token of", account, with.SubResource("token").Create(t.Context(), account, made))
	return made.Status.Token
}

// Get reads the object of that key.
func Get(t testing.TB, with client.Reader, key client.ObjectKey, object client.Object) {
	t.Helper()
	if err := with.Get(t.Context(), key, object); err != nil {
		t.Fatalf("reading %T %s: %v", object, key, err)
	}
}

// Read reads the object of that namespace and name.
func Read(t testing.TB, with client.Reader, object client.Object) {
	t.Helper()
	Get(t, with, client.ObjectKeyFromObject(object), object)
}

// List reads a list.
func List(t testing.TB, with client.Reader, list client.ObjectList, options ...client.ListOption) {
	t.Helper()
	if err := with.List(t.Context(), list, options...); err != nil {
		t.Fatalf("reading %T: %v", list, err)
	}
}

// Update writes an object.
func Update(t testing.TB, with client.Writer, object client.Object, options ...client.UpdateOption) {
	t.Helper()
	must(t, "updating", object, with.Update(t.Context(), object, options...))
}

// UpdateStatus writes the status of an object.
func UpdateStatus(t testing.TB, with client.StatusClient, object client.Object) {
	t.Helper()
	must(t, "updating the status of", object, with.Status().Update(t.Context(), object))
}

// Patch patches an object.
func Patch(t testing.TB, with client.Writer, object client.Object, patch client.Patch, options ...client.PatchOption) {
	t.Helper()
	must(t, "patching", object, with.Patch(t.Context(), object, patch, options...))
}

// Merge patches an object with JSON that is merged into it.
func Merge(t testing.TB, with client.Writer, object client.Object, patch []byte) {
	t.Helper()
	Patch(t, with, object, client.RawPatch(types.MergePatchType, patch))
}

// Annotate sets an annotation of an object.
func Annotate(t testing.TB, with client.Writer, object client.Object, key, value string) {
	t.Helper()
	Merge(t, with, object, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// PatchStatus patches the status of an object.
func PatchStatus(t testing.TB, with client.StatusClient, object client.Object, patch client.Patch) {
	t.Helper()
	must(t, "patching the status of", object, with.Status().Patch(t.Context(), object, patch))
}

// PastConflicts tries to read an object and write it until no other write comes in between, for Patience at most: controllers write the
// same objects, again and again where the machine is slow. It returns the last error of a try.
func PastConflicts(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		err := try()
		if !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(soonest):
		}
	}
}

// Change reads the object of that namespace and name, changes and writes it, until the API server takes it: others may
// write it in between. What the API server holds to be wrong fails the test at once.
func Change[T client.Object](t testing.TB, with client.Client, object T, change func(T)) {
	t.Helper()
	Object(t, with, object, func(object T) error {
		change(object)
		return unlessWrong(t, "updating", object, with.Update(t.Context(), object))
	})
}

// ChangeStatus is Change for what a status says.
func ChangeStatus[T client.Object](t testing.TB, with client.Client, object T, change func(T)) {
	t.Helper()
	Object(t, with, object, func(object T) error {
		change(object)
		return unlessWrong(t, "updating the status of", object, with.Status().Update(t.Context(), object))
	})
}

// Put makes an object, or changes the one of that namespace and name: change gets what there is.
func Put[T client.Object](t testing.TB, with client.Client, object T, change func(T)) {
	t.Helper()
	Eventually(t, Patience, func() error {
		err := with.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		change(object)
		if err != nil {
			object.SetResourceVersion("")
			return unlessWrong(t, "creating", object, with.Create(t.Context(), object))
		}
		return unlessWrong(t, "updating", object, with.Update(t.Context(), object))
	})
}

// Delete deletes an object, and does not wait for its end: see Gone.
func Delete(t testing.TB, with client.Writer, object client.Object, options ...client.DeleteOption) {
	t.Helper()
	must(t, "deleting", object, with.Delete(t.Context(), object, options...))
}

// unlessWrong fails the test by an error that no further try changes, and returns others.
func unlessWrong(t testing.TB, doing string, object client.Object, err error) error {
	t.Helper()
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		must(t, doing, object, err)
	}
	return err
}

func must(t testing.TB, doing string, object client.Object, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s %T %s: %v", doing, object, client.ObjectKeyFromObject(object), err)
	}
}
