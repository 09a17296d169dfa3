"""Reading fields of models in C: straight from the slot where the object is just what it is said to be."""

from cpython.object cimport PyObject, PyTypeObject, Py_TYPE

cdef extern from *:
    """
    #include <structmember.h>

    /* Where the instances of a class have a slot, -1 if it is not a plain one. */
    static CYTHON_INLINE Py_ssize_t dra_offset(PyObject* slot) {
        PyMemberDef* member;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) return -1;
        member = ((PyMemberDescrObject*)slot)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }

    #if defined(__GNUC__)
    #define dra_prefetch(object) __builtin_prefetch(object)
    #else
    #define dra_prefetch(object) ((void)(object))
    #endif
    """
    Py_ssize_t dra_offset(object slot)
    void prefetch "dra_prefetch"(object instance) noexcept  # to be read soon: do not wait for the memory then


cdef struct Field:
    PyTypeObject* cls
    Py_ssize_t offset
    PyObject* name


cdef inline Field field_of(type cls, str name) except *:
    """A field of a class that is never deleted; its name is interned, and so is never deleted either."""
    cdef Field field
    field.cls = <PyTypeObject*>cls
    field.offset = dra_offset(getattr(cls, name))
    field.name = <PyObject*>name
    return field


cdef inline object read(Field* field, object instance):
    """`instance.name`, of whatever class it is."""
    cdef PyObject* value = NULL
    if Py_TYPE(instance) == field.cls and field.offset > 0:
        value = (<PyObject**>(<char*><PyObject*>instance + field.offset))[0]
    if value != NULL:
        return <object>value
    return getattr(instance, <object>field.name)
