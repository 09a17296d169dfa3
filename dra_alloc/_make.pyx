"""Instances of models at the cost of their fields.

The `__init__` of a frozen class goes through keywords and `object.__setattr__` once a field; where a result is made for
each device of each answer, that is most of what the answer costs.
"""

import attrs

cdef extern from *:
    """
    static CYTHON_INLINE int set_slot(PyObject* slot, PyObject* instance, PyObject* value) {
        return Py_TYPE(slot)->tp_descr_set(slot, instance, value);
    }
    """
    int set_slot(object slot, object instance, object value) except -1


cdef class Maker:
    """Makes instances of an attrs class from the values of all its fields, in their order, taken as they are.

    Raises TypeError for a class whose `__init__` does more than that, and for another number of values.
    """

    cdef type _cls
    cdef tuple _slots

    def __init__(self, type cls):
        fields = attrs.fields(cls)
        for field in fields:
            if field.converter is not None or field.validator is not None or not field.init:
                raise TypeError(f"{cls.__name__}.{field.name} is not taken as it is given")
        if cls.__dictoffset__ or hasattr(cls, "__attrs_pre_init__") or hasattr(cls, "__attrs_post_init__"):
            raise TypeError(f"instances of {cls.__name__} are more than their fields")
        self._cls = cls
        self._slots = tuple([getattr(cls, field.name) for field in fields])

    def __call__(self, *values):
        cdef Py_ssize_t i
        if len(values) != len(self._slots):
            raise TypeError(f"{self._cls.__name__} has {len(self._slots)} fields, not {len(values)}")
        instance = self._cls.__new__(self._cls)
        for i in range(len(values)):
            set_slot(self._slots[i], instance, values[i])
        return instance
